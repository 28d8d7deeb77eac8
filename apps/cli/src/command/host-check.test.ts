import { type HostCheckLine, type InstanceId, noLimits } from '@floe/domain'
import { Command } from 'commander'
import { beforeEach, expect, test, vi } from 'vitest'
import { addHost } from './host'
import { addProfile } from './profile'

const hostId = '00000000-0000-4000-8000-000000000001'
const instanceId = '00000000-0000-4000-8000-000000000002' as InstanceId
/** What the console was asked, and what it answers. */
const asked: [string, Record<string, unknown> | undefined][] = []
const answers: Record<string, unknown> = {}
const noun = (of: string) =>
  new Proxy(
    {},
    {
      get: (_, verb) => {
        const ask = async (input?: Record<string, unknown>) => {
          asked.push([`${of}.${String(verb)}`, input])
          return answers[`${of}.${String(verb)}`]
        }
        return { query: ask, mutate: ask }
      },
    },
  )
vi.mock('./find-instance', () => ({
  openConsole: () => ({ trpc: { host: noun('host'), setting: noun('setting') } }),
  findInstance: async () => ({ instanceId }),
}))

const lines: string[] = []
beforeEach(() => {
  asked.length = 0
  lines.length = 0
  process.exitCode = 0
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => lines.push(String(text)) > 0)
  return () => {
    vi.restoreAllMocks()
    process.exitCode = 0
  }
})

const floe = async (...words: string[]) => {
  lines.length = 0
  const program = new Command()
  addHost(program)
  addProfile(program.command('instance'))
  await program.parseAsync(words, { from: 'user' })
  return lines.join('')
}

const line = (name: string, severity: HostCheckLine['severity'], more: Partial<HostCheckLine> = {}) => ({
  ...{ name, severity, group: 'memory', actual: '60', wanted: 'at most 10', why: 'Why so.', command: null },
  ...more,
})
const told = (check: HostCheckLine[], at = Date.now()) => ({
  last: { at, actorName: 'Ann', check: { container: false, lines: check } },
  failed: null,
})

test('a host is checked anew, or the last check is told; a fault comes first and is the exit status', async () => {
  const good = [line('vm.swappiness', 'ok')] as HostCheckLine[]
  const bad = [
    ...good,
    line('nofile', 'advice', { command: 'echo "* - nofile 1048576"' }),
    line('durability of /data', 'fault', { actual: 'nobarrier' }),
    line('clocksource', 'unknown', { actual: null }),
  ] as HostCheckLine[]
  answers['host.list'] = { hosts: [{ hostId, own: true }] }
  answers['host.show'] = { host: { hostId, name: 'db-1' }, check: told(good, Date.now() - 3 * 86_400_000) }
  answers['host.check'] = told(bad)
  const text = await floe('host', 'check')
  expect(asked.map(([path]) => path)).toEqual(['host.list', 'host.show', 'host.check'])
  expect(text.indexOf('FAULT   durability of /data: nobarrier, wanted: at most 10')).toBeGreaterThan(0)
  expect(text.indexOf('advice  nofile')).toBeGreaterThan(text.indexOf('FAULT'))
  expect(text).toContain('As root: echo "* - nofile 1048576"')
  expect(text).toContain('clocksource: unknown')
  expect(text).not.toContain('vm.swappiness')
  expect(text).toContain('1 fault, 1 to improve, 1 unknown, 1 as wanted')
  expect(process.exitCode).toBe(1)

  process.exitCode = 0
  asked.length = 0
  const last = await floe('host', 'check', 'db-1', '--last', '--all')
  expect(asked.map(([path]) => path)).toEqual(['host.show'])
  expect(last).toContain('vm.swappiness')
  expect(last).toMatch(/ago: it may be otherwise now/)
  expect(process.exitCode).toBe(0)
})

test('a host that was never checked, and a check that told nothing, say so', async () => {
  const failed = {
    at: 1_000,
    actorName: 'Ann',
    fault: { code: 'agent.unreachable', message: 'it is silent' },
  }
  answers['host.show'] = { host: { hostId, name: 'db-1' }, check: { last: null, failed: null } }
  expect(await floe('host', 'check', 'db-1', '--last')).toContain('Host "db-1" was never checked.')
  answers['host.show'] = { host: { hostId, name: 'db-1' }, check: { last: null, failed } }
  expect(await floe('host', 'check', 'db-1', '--last')).toContain('returned no result: it is silent')
})

test('a profile is shown with reasons and changes nothing; with --apply it is one change of what this engine has', async () => {
  const proposed = (name: string, value: string) => ({ name, value, reason: `Why ${name}.` })
  answers['setting.profile'] = {
    host: { hostName: 'db-1', memoryBytes: 2 ** 34, cpus: 8 },
    share: 0.5,
    ceiling: { memoryBytes: 2 ** 32, cpus: null },
    lines: [proposed('work_mem', '20MB'), proposed('polar_bulk_write_size', '128kB')],
  }
  answers['setting.list'] = { settings: [{ name: 'work_mem', values: [{ shown: '4MB' }] }] }
  answers['setting.set'] = { operationId: 'o' }
  const text = await floe('instance', 'profile', 'shop', 'oltp-nvme', '--share', '50')
  expect(text).toContain('OLTP on NVMe for 50 % of db-1')
  expect(text).toContain('Its limits let it have 4 GB of memory.')
  expect(text).toMatch(/work_mem +4MB +20MB +Why work_mem\./)
  expect(text).not.toContain('polar_bulk_write_size')
  expect(asked.map(([path]) => path)).toEqual(['setting.profile', 'setting.list'])
  expect(asked[0]?.[1]).toMatchObject({ profile: 'oltp-nvme', share: 0.5 })
  await floe('instance', 'profile', 'shop', 'oltp-nvme', '--apply', '--no-wait')
  expect(asked.at(-1)).toMatchObject([
    'setting.set',
    { changes: [{ name: 'work_mem', value: '20MB' }], restart: false, reason: 'Profile OLTP on NVMe' },
  ])
  await expect(floe('instance', 'profile', 'shop', 'fast')).rejects.toThrow('there is no profile "fast"')
  expect(await floe('instance', 'profile', 'shop')).toContain('bulk-load')
})

test('the map of a host is a table whose rows add up, and says what hurts whom', async () => {
  answers['host.show'] = { host: { hostId, name: 'db-1', state: 'stale', ageMs: 9_000 } }
  const part = { of: null, unknown: 0 }
  answers['host.map'] = {
    resources: [
      { ...part, resource: 'cpu', size: 4, used: [2, null], others: 1, left: 1 },
      { ...part, resource: 'writes', size: null, used: [2_048, 0], others: null, left: null },
    ],
    instances: [
      { name: 'alpha', state: 'running', limits: { ...noLimits, cpu: 5, dataWriteIops: 800 } },
      { name: 'beta', state: 'unknown', limits: noLimits },
    ],
    sums: [{ resource: 'cpu', limited: 5, size: 4, unlimited: 1, highOnly: 0, over: true }],
    diskUse: ['Disk vda was busy 50 % of the last seconds.'],
    pressures: [{ title: 'beta stalled', detail: 'Once.', hint: 'Limit alpha.' }],
  }
  const text = await floe('host', 'map', 'db-1')
  expect(text).toContain('The machine as last seen 9 s ago.')
  expect(text).toMatch(/alpha +running +2\.00 cores \(limit 5 cores\) +2 kB\/s \(limit 800 IOPS\)/)
  expect(text).toMatch(/beta +unknown +– +0 B\/s/)
  expect(text).toMatch(/everything else +1\.00 core +–/)
  expect(text).toMatch(/left +1\.00 core +–/)
  expect(text).toMatch(/all there is +4\.00 cores +–/)
  expect(text).toContain(
    'cpu limits of all: 5 cores of 4 cores; 1 has none and may take all of it (over-committed)',
  )
  expect(text).toContain('Disk vda was busy 50 % of the last seconds.')
  expect(text).toContain('beta stalled. Once. Limit alpha.')
  answers['host.map'] = { resources: [], instances: [], sums: [], diskUse: [], pressures: [] }
  expect(await floe('host', 'map', 'db-1')).toContain('Nothing is known of host "db-1" yet')
})
