import { describe, expect, test } from 'vitest'
import { noLimits } from './instance-limits'
import {
  ceilingWords,
  HostShare,
  ProfileName,
  profileCeiling,
  profileSettings,
  profileWords,
  proposedShare,
} from './setting-profile'

const GB = 1024 ** 3
const hosts = [
  { memoryBytes: 1 * GB, cpus: 1 },
  { memoryBytes: 16 * GB, cpus: 8 },
  { memoryBytes: 512 * GB, cpus: 104 },
]
const shares = [0.01, 0.25, 1]
const bytesOf = (value: string) => Number(/^(\d+)MB$/.exec(value)?.[1]) * 1024 ** 2
const proposed = (profile: ProfileName, name: string, host = hosts[1] as (typeof hosts)[0], share = 1) =>
  profileSettings(profile, host, share).find((line) => line.name === name)?.value

describe.each(ProfileName.options)('%s', (profile) => {
  const all = hosts.flatMap((host) =>
    shares.map((share) => ({ host, share, lines: profileSettings(profile, host, share) })),
  )

  test('has each setting once, with a reason, and a name for people', () => {
    for (const { lines } of all) {
      expect(new Set(lines.map((line) => line.name)).size).toBe(lines.length)
      for (const { value, reason } of lines) {
        expect(value).toMatch(/^\d+(\.\d+)?(MB|kB|min)?$/)
        expect(reason).toMatch(/^.{10,}\.$/s)
      }
    }
    expect(profileWords[profile].title).not.toBe('')
  })

  test('gives up no durability and touches nothing that standbys have to follow', () => {
    const never =
      /^(fsync|full_page_writes|synchronous_commit|synchronous_standby_names|wal_level|wal_sync_method|zero_damaged_pages|autovacuum|data_checksums|polar_page_repair.*|max_connections|max_worker_processes|max_wal_senders|max_prepared_transactions|max_locks_per_transaction)$/
    for (const { lines } of all) expect(lines.filter((line) => never.test(line.name))).toEqual([])
  })

  test('never takes more shared memory than a third of what the instance has, above the smallest', () => {
    for (const { host, share, lines } of all) {
      const buffers = bytesOf(lines.find((line) => line.name === 'shared_buffers')?.value ?? '')
      expect(buffers).toBeLessThanOrEqual(Math.max(128 * 1024 ** 2, (host.memoryBytes * share) / 3))
    }
  })
})

test('values follow the host and the share', () => {
  expect(proposed('oltp-nvme', 'shared_buffers')).toBe('4096MB')
  expect(proposed('oltp-nvme', 'shared_buffers', hosts[1], 0.25)).toBe('1024MB')
  expect(proposed('oltp-nvme', 'work_mem')).toBe('20MB')
  expect(proposed('analytics', 'work_mem')).toBe('256MB')
  expect(proposed('analytics', 'max_parallel_workers_per_gather')).toBe('4')
  expect(proposed('analytics', 'max_parallel_workers_per_gather', hosts[1], 0.25)).toBe('1')
  expect(proposed('bulk-load', 'polar_bulk_extend_size')).toBe('4MB')
  expect(proposed('tiny', 'shared_buffers', hosts[2])).toBe('128MB')
})

test('what limits let it have counts where it is less than the share, and the reason says so', () => {
  const host = { memoryBytes: 512 * GB, cpus: 104 }
  const of = (ceiling: { memoryBytes: number | null; cpus: number | null }, profile: ProfileName) =>
    new Map(profileSettings(profile, host, 0.25, ceiling).map((line) => [line.name, line]))
  const limited = of({ memoryBytes: 4 * GB, cpus: 0.7 }, 'oltp-nvme')
  expect(limited.get('shared_buffers')).toEqual({
    name: 'shared_buffers',
    value: '1024MB',
    reason: '25 % of its memory limit of 4 GB; the rest caches files and is needed by sessions.',
  })
  expect(limited.get('max_parallel_workers_per_gather')?.value).toBe('0')
  // a limit that lets it have more than its share changes nothing
  expect(of({ memoryBytes: 200 * GB, cpus: 50 }, 'analytics')).toEqual(
    of({ memoryBytes: null, cpus: null }, 'analytics'),
  )
  for (const profile of ProfileName.options)
    expect(
      bytesOf(of({ memoryBytes: GB / 16, cpus: null }, profile).get('shared_buffers')?.value ?? ''),
    ).toBe(32 * 1024 ** 2)
})

test('the lowest limit of all members counts', () => {
  expect(profileCeiling([noLimits, noLimits])).toEqual({ memoryBytes: null, cpus: null })
  expect(
    profileCeiling([
      { ...noLimits, memoryMax: 4 * GB, cpu: 2 },
      { ...noLimits, memoryHigh: 3 * GB, memoryMax: 8 * GB },
    ]),
  ).toEqual({ memoryBytes: 3 * GB, cpus: 2 })
  expect(ceilingWords({ memoryBytes: 3 * GB, cpus: 1 })).toBe(
    'Its limits let it have 3 GB of memory and 1 core.',
  )
  expect(ceilingWords({ memoryBytes: null, cpus: null })).toBeNull()
})

test('the proposed share is the host divided by its instances, and always a share', () => {
  expect([0, 1, 2, 3, 1_000].map(proposedShare)).toEqual([1, 1, 0.5, 0.33, 0.01])
  for (const n of [0, 1, 7, 1_000]) expect(HostShare.safeParse(proposedShare(n)).success).toBe(true)
})
