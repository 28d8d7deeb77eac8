import { stallCause } from '@floe/telemetry'
import { describe, expect, test } from 'vitest'
import { rootOf, StallDetector, stuckFromRow, type WorkSeen } from './stall-detector'

const start = 1_764_000_000_000
/** A second of an instance: `commits` is what was committed in it. */
type Second = Partial<Omit<WorkSeen, 'commits' | 'at'>> & { commits?: number; wrote?: number; at?: number }

const wait = (type: string, event: string, count: number, ageMs: number) => ({ type, event, count, ageMs })

/** Shows seconds to a detector; answers the stalls that ended, and the one that lasts. */
function shown(seconds: readonly Second[], afterMs = 1_000) {
  const detector = new StallDetector(() => afterMs)
  let [commits, ended] = [1_000, 500]
  const stalls = seconds.flatMap((second, i) => {
    commits += second.commits ?? 0
    ended += second.wrote ?? 0
    const seen: WorkSeen = {
      at: start + i * 1_000,
      life: 1,
      waits: [],
      holders: [],
      checkpoint: null,
      checkpointerStopped: false,
      checkpointerHangsIn: null,
      devices: [],
      devicesBusyMs: null,
      ioWaitSeconds: null,
      cpuThrottledSeconds: null,
      memoryWaitSeconds: null,
      ...second,
      commits,
      endedTransactions: ended,
    }
    return detector.see(seen) ?? []
  })
  return { stalls, running: detector.running, detector }
}
const busy: Second = { commits: 800, wrote: 800 }

describe('what is a stall', () => {
  const locked = (ageMs: number): Second => ({ waits: [wait('Lock', 'relation', 4, ageMs)] })

  test('work without a commit from the last commit to the next', () => {
    const { stalls, running } = shown([busy, busy, locked(900), locked(1_900), locked(2_900), busy, busy])
    expect(running).toBeNull()
    expect(stalls).toEqual([
      {
        // the transactions began after the last sample with a commit
        startedAt: start + 1_100,
        endedAt: start + 5_000,
        cause: 'lock',
        waits: [{ type: 'Lock', event: 'relation', count: 8 }],
        sessions: 4,
        checkpoint: null,
        checkpointerStopped: false,
        checkpointerHangsIn: null,
        device: null,
      },
    ])
  })

  test('one that lasts is known while it lasts', () => {
    const { stalls, running } = shown([busy, busy, locked(900), locked(1_900)])
    expect(stalls).toEqual([])
    expect(running).toMatchObject({ startedAt: start + 1_100, endedAt: start + 3_000, cause: 'lock' })
  })

  test('it lasts at least as long as is set', () => {
    const seconds = [busy, busy, locked(900), locked(1_900), locked(2_900), busy]
    expect(shown(seconds, 3_000).stalls).toEqual([])
    expect(shown(seconds, 2_500).stalls).toHaveLength(1)
  })

  test('transactions that end are none, though others wait for long', () => {
    expect(
      shown([busy, busy, ...[1, 2, 3].map((n) => ({ ...busy, ...locked(n * 1_000) }))]).running,
    ).toBeNull()
    // one that wrote has ended: counters of commits come late
    expect(
      shown([busy, busy, ...[1, 2, 3].map((n) => ({ wrote: 1, ...locked(n * 1_000) }))]).running,
    ).toBeNull()
  })

  test('who only watches does not hide one', () => {
    const watched = [1, 2, 3].map((n) => ({ commits: 2, ...locked(n * 1_000) }))
    expect(shown([busy, busy, ...watched]).running).toMatchObject({ cause: 'lock' })
  })

  test('no work is none, nor is work that only computes, nor a report that reads', () => {
    expect(shown([busy, {}, {}, {}]).running).toBeNull()
    const computing = { waits: [{ type: null, event: null, count: 1, ageMs: 9_000 }] }
    expect(shown([busy, computing, computing, computing]).running).toBeNull()
    const quiet: Second[] = Array.from({ length: 70 }, () => ({}))
    const reading = { waits: [wait('IO', 'DataFileRead', 1, 9_000)] }
    expect(shown([busy, ...quiet, reading, reading, reading]).running).toBeNull()
    expect(shown([busy, ...quiet, locked(4_000), locked(5_000)]).running).toMatchObject({ cause: 'lock' })
  })

  test('an engine that ended, or a hole in the samples, ends it with the last that was seen', () => {
    const seconds = [busy, busy, locked(900), locked(1_900)]
    expect(shown([...seconds, { ...locked(10), life: 2 }]).stalls).toMatchObject([{ endedAt: start + 3_000 }])
    expect(shown([...seconds, { ...locked(60_000), at: start + 60_000 }]).stalls).toMatchObject([
      { endedAt: start + 3_000 },
    ])
    expect(shown(seconds).detector.end()).toMatchObject({ endedAt: start + 3_000 })
  })
})

describe('what it waited for', () => {
  const device = (used: number) => [{ name: 'nvme0n1', uses: [{ used, perSecond: 100 }] }]
  const flushing = (n: number, more: Second = {}): Second => ({
    waits: [wait('IO', 'WalSync', 1, n * 1_000), wait('LWLock', 'WALWrite', 15, n * 1_000)],
    ...more,
  })

  test('a device at its limit', () => {
    const seconds = [1, 2, 3].map((n) => flushing(n, { devices: device(n * 97) }))
    expect(shown([{ ...busy, devices: device(0) }, ...seconds]).running).toMatchObject({
      cause: 'limited-device',
      device: 'nvme0n1',
      waits: [
        { type: 'LWLock', event: 'WALWrite' },
        { type: 'IO', event: 'WalSync' },
      ],
    })
  })

  test('a device that does nothing while its limit holds one large request back', () => {
    // recorded with a kernel 6.18 and cgroup v1: a write of 8 MB at 1 MB a second is counted at once, and lasts for 8 s
    const uses = (bytes: number) => [{ name: 'loop1', uses: [{ used: bytes, perSecond: 1_048_576 }] }]
    const busyMs = [132, 132, 132, 140, 140, 140, 140]
    const held = busyMs.map((devicesBusyMs, i) =>
      flushing(i + 1, { devices: uses(8_388_608), devicesBusyMs, ioWaitSeconds: i * 0.99 }),
    )
    const first = { ...busy, devices: uses(8_388_608), devicesBusyMs: 132, ioWaitSeconds: 0 }
    const of = (seconds: Second[]) => shown([first, ...seconds]).running
    expect(of(held)).toMatchObject({ cause: 'limited-device', device: 'loop1' })
    // storage that works, however slowly, is what they wait for
    expect(of(held.map((s, i) => ({ ...s, devicesBusyMs: 132 + i * 950 })))?.cause).toBe('storage')
    // a frozen file system: nobody waits for a device
    expect(of(held.map((s) => ({ ...s, ioWaitSeconds: 0 })))?.cause).toBe('storage')
    // no limit, or nothing known
    expect(of(held.map((s) => ({ ...s, devices: [] })))?.cause).toBe('storage')
    expect(of(held.map((s) => ({ ...s, devicesBusyMs: null })))?.cause).toBe('storage')
    const two = (s: Second) => ({ ...s, devices: [...uses(8_388_608), { name: 'vdb', uses: [] }] })
    expect(shown([two(first), ...held.map(two)]).running).toMatchObject({
      cause: 'limited-device',
      device: null,
    })
    expect(of(held.map((s) => ({ ...s, waits: [wait('Lock', 'relation', 1, 9_000)] })))?.cause).toBe('lock')
  })

  test('storage, where the device is not at its limit or has none', () => {
    const seconds = [1, 2, 3].map((n) => flushing(n, { devices: device(n * 20) }))
    expect(shown([{ ...busy, devices: device(0) }, ...seconds]).running).toMatchObject({
      cause: 'storage',
      device: null,
    })
    expect(shown([busy, flushing(1), flushing(2)]).running).toMatchObject({ cause: 'storage' })
  })

  test('a lock whose holder waits for the device is the device’s', () => {
    const queue = (n: number): Second => ({
      waits: [wait('Lock', 'transactionid', 14, n * 1_000), wait('IO', 'WalSync', 1, n * 1_000)],
      holders: [{ type: 'IO', event: 'WalSync', count: 1 }],
      devices: device(n * 100),
    })
    expect(shown([{ ...busy, devices: device(0) }, queue(1), queue(2), queue(3)]).running).toMatchObject({
      cause: 'limited-device',
    })
  })

  test('a lock stays a lock while the device is at its limit for others', () => {
    const locked = (n: number): Second => ({
      waits: [wait('Lock', 'tuple', 6, n * 1_000)],
      devices: device(n * 100),
      checkpointerStopped: true,
    })
    expect(shown([{ ...busy, devices: device(0) }, locked(1), locked(2)]).running).toMatchObject({
      cause: 'lock',
    })
  })

  test('a checkpointer that is stopped, whatever of it sessions wait for', () => {
    const frozen = (type: string, event: string) =>
      [1, 2, 3].map((n) => ({
        waits: [wait(type, event, 3, n * 1_000)],
        checkpointerStopped: true,
        checkpoint: { kind: 'checkpoint', phase: 'sync' },
      }))
    for (const [type, event] of [
      ['IPC', 'CheckpointDone'],
      ['LWLock', 'CheckpointerComm'],
      ['LWLock', 'BufferContent'],
    ] as const)
      expect(shown([busy, ...frozen(type, event)]).running, event).toMatchObject({
        cause: 'checkpointer',
        checkpointerStopped: true,
        checkpoint: { kind: 'checkpoint', phase: 'sync' },
      })
  })

  test('a checkpointer that hangs in the kernel, where sessions wait for it and not for storage themselves', () => {
    const hung = (type: string, event: string) =>
      [1, 2, 3].map((n) => ({
        waits: [wait(type, event, 3, n * 1_000)],
        checkpointerHangsIn: n < 2 ? null : 'percpu_rwsem_wait',
      }))
    const told = (type: string, event: string) => shown([busy, ...hung(type, event)]).running
    for (const [type, event] of [
      ['IPC', 'CheckpointDone'],
      ['LWLock', 'BufferContent'],
    ] as const) {
      const record = told(type, event)
      expect(record, event).toMatchObject({ cause: 'checkpointer', checkpointerHangsIn: 'percpu_rwsem_wait' })
      expect(record && stallCause(record)).toBe(
        'the checkpointer, which hangs in the kernel (percpu_rwsem_wait)',
      )
    }
    expect(told('IO', 'WalSync')?.cause).toBe('storage')
    expect(told('Lock', 'relation')?.cause).toBe('lock')
  })

  test('a standby that commits wait for', () => {
    const waiting = [1, 2].map((n) => ({ waits: [wait('IPC', 'SyncRep', 3, n * 1_000)] }))
    expect(shown([busy, ...waiting]).running).toMatchObject({ cause: 'standby' })
  })

  test('processors at their limit, of sessions that wait for nothing', () => {
    const held = [1, 2, 3].map((n) => ({
      waits: [{ type: null, event: null, count: 2, ageMs: n * 1_000 }],
      cpuThrottledSeconds: n * 0.9,
    }))
    expect(shown([{ ...busy, cpuThrottledSeconds: 0 }, ...held]).running).toMatchObject({
      cause: 'limited-cpu',
      sessions: 2,
      waits: [],
    })
  })

  test('memory that the kernel takes back first, of sessions that wait for nothing or read', () => {
    const held = (waits: WorkSeen['waits'][number], share: number) =>
      [1, 2, 3].map((n) => ({
        waits: [{ ...waits, ageMs: n * 1_000 }],
        memoryWaitSeconds: n * share,
      }))
    const working = { type: null, event: null, count: 2, ageMs: 0 }
    const first = { ...busy, memoryWaitSeconds: 0 }
    expect(shown([first, ...held(working, 0.8)]).running).toMatchObject({ cause: 'memory', sessions: 2 })
    expect(shown([first, ...held(wait('IO', 'DataFileRead', 2, 0), 0.8)]).running?.cause).toBe('memory')
    expect(shown([first, ...held(wait('IO', 'DataFileRead', 2, 0), 0.2)]).running?.cause).toBe('storage')
    expect(shown([first, ...held(wait('Lock', 'relation', 2, 0), 0.8)]).running?.cause).toBe('lock')
    // who works is not stuck
    expect(shown([first, ...held(working, 0.2)]).running).toBeNull()
  })

  test('at most eight events are told, the most frequent ones', () => {
    const waits = Array.from({ length: 12 }, (_, i) => wait('LWLock', `event${i}`, i + 1, 3_000))
    const told = shown([busy, { waits }, { waits }, { waits }]).running?.waits
    expect(told).toHaveLength(8)
    expect(told?.[0]).toMatchObject({ event: 'event11' })
  })
})

test('a row that tells something else is no work', () => {
  expect(stuckFromRow({ stuck: { waits: [{ type: 1 }], holders: [] } })).toEqual({ waits: [], holders: [] })
  expect(stuckFromRow({})).toEqual({ waits: [], holders: [] })
  expect(rootOf({ type: 'IPC', event: 'CheckpointStart' })).toBe('checkpointer')
})
