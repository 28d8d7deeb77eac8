import type { KnownInstance } from '@floe/db'
import {
  type DispatcherSeen,
  type FlashbackLog,
  type LimitsObserved,
  noLimits,
  type Protection,
  type ReplicationObserved,
} from '@floe/domain'
import { expect, test } from 'vitest'
import { FakeAgent, facts, replication, standbySeen } from '../testing/fake-agent'
import { deriveIncidents, type HostSeen, hostOffline, SLOT_RETAINED_BYTES } from './derive-incidents'

const known = (more: Partial<KnownInstance> = {}): KnownInstance => ({
  instanceId: 'i-1',
  name: 'one',
  state: 'running',
  seen: true,
  deleted: false,
  deletedBefore: false,
  created: true,
  busy: false,
  memberRole: 'primary' as const,
  fenceOrderedAt: null,
  fenceTimeline: null,
  fenceRefusal: null,
  clusterId: null,
  holdings: null,
  ...more,
})

function seen(
  more: Partial<HostSeen> & { free?: number; state?: 'running' | 'crashed' | null } = {},
): HostSeen {
  const double = new FakeAgent('h-1')
  const state = more.state === undefined ? 'running' : more.state
  if (state) double.show('i-1', 'one', state)
  const f = facts()
  const disk = f.disks[0]
  if (disk && more.free !== undefined) disk.freeBytes = disk.sizeBytes * more.free
  return {
    hostId: 'h-1',
    hostName: 'first',
    report: { bootId: 'b', seq: 1, at: 0, facts: f, instances: [...double.instances.values()] },
    known: [known()],
    clockSkewMs: 0,
    inDoubt: new Set(),
    open: new Map(),
    ...more,
  }
}
const opened = (...keys: string[]) => new Map<string, string | null>(keys.map((key) => [key, null]))
const keys = (s: HostSeen) => deriveIncidents(s).map((i) => i.key)

test('a healthy host has no incident', () => {
  expect(keys(seen())).toEqual([])
})

test('a disk below 5 % opens an incident that stays until 6 % are free', () => {
  expect(keys(seen({ free: 0.051 }))).toEqual([])
  expect(keys(seen({ free: 0.049 }))).toEqual(['disk-low:h-1:/'])
  const open = opened('disk-low:h-1:/')
  expect(keys(seen({ free: 0.055, open }))).toEqual(['disk-low:h-1:/'])
  expect(keys(seen({ free: 0.06, open }))).toEqual([])
  expect(deriveIncidents(seen({ free: 0.005 }))[0]?.severity).toBe('critical')
})

test('what an agent says is wrong with itself is an incident for as long as it says so', () => {
  const fault = {
    code: 'telemetry.samples_not_stored',
    message: 'could not store the samples',
    hint: 'Free space.',
  }
  const problems = ['i-1', 'i-2'].map((id) => ({
    key: `samples-not-stored:${id}`,
    instanceId: id as never,
    since: 0,
    fault,
  }))
  const healthy = seen()
  const troubled = { ...healthy, report: { ...healthy.report, problems } }
  expect(deriveIncidents(troubled)).toMatchObject([
    { key: 'agent-problem:h-1:samples-not-stored:i-1', instanceId: 'i-1', hint: 'Free space.' },
    // nobody registered it: there is no page to link to
    { key: 'agent-problem:h-1:samples-not-stored:i-2', instanceId: null },
  ])
})

test('a crashed instance is an incident with the engine’s own words', () => {
  expect(deriveIncidents(seen({ state: 'crashed' }))).toMatchObject([
    { key: 'instance-crashed:i-1', severity: 'critical', detail: 'it was killed' },
  ])
})

test('an engine that waits for torn pages is told of with the verb for members that all do', () => {
  const hint = (because: string) => {
    const s = seen({ state: 'crashed' })
    for (const i of s.report.instances) Object.assign(i, { because })
    return deriveIncidents(s)[0]?.hint
  }
  const torn = 'block 15 of relation "base/5/1247" is torn, and no page repair source could give it'
  expect(hint(torn)).toMatch(
    /If every member crashed .* run "\.\/floe cluster recover one --confirm PRIMARY"/,
  )
  expect(hint('out of memory')).not.toMatch(/recover/)
})

test('a crash is over when the instance runs, not when it starts', () => {
  const starting = seen({ open: opened('instance-crashed:i-1') })
  const [instance] = starting.report.instances
  if (instance) instance.state = 'starting'
  expect(keys(starting)).toEqual(['instance-crashed:i-1'])
  expect(keys({ ...starting, open: opened() })).toEqual([])
})

/** A host whose instance says this of what protects it. */
function protecting(p: Partial<Protection>, at = 20_000, more: Partial<HostSeen> = {}): HostSeen {
  const s = seen(more)
  const [instance] = s.report.instances
  if (instance)
    instance.protection = {
      state: 'protected',
      since: 10_000,
      why: '',
      fullPageWrites: false,
      imagesInForce: false,
      guard: true,
      sources: [],
      recovery: null,
      ...p,
    }
  s.report.at = at
  return s
}
const protectedBy = (...said: Parameters<typeof protecting>) => keys(protecting(...said))
const open = opened('page-unprotected:i-1')
const pageSource = (healthy: boolean) => ({
  source: 's',
  healthy,
  why: null,
  flushLsn: null,
  replayLsn: null,
  checkedAt: null,
})

test('being exposed to torn pages is an incident once it has lasted, until the guard relies on a source', () => {
  expect(protectedBy({})).toEqual([])
  expect(protectedBy({ state: 'exposed' }, 19_000)).toEqual([])
  expect(protectedBy({ state: 'exposed' })).toEqual(['page-unprotected:i-1'])
  // the guard came in: it stays open, over the change of state, until the guard ends its images
  const guarded = { state: 'full_page_writes' as const, imagesInForce: true, since: 20_000 }
  expect(protectedBy(guarded, 21_000, { open })).toEqual(['page-unprotected:i-1'])
  const back = { ...guarded, sources: [pageSource(true)] }
  expect(protectedBy(back, 21_000, { open })).toEqual(['page-unprotected:i-1'])
  expect(protectedBy({ sources: [pageSource(true)] }, 99_000, { open })).toEqual([])
  // at a start images are in force until the guard has seen its source
  expect(protectedBy(back, 99_000)).toEqual([])
  // images because a person wants them are no incident, and end one
  expect(protectedBy({ ...guarded, fullPageWrites: true }, 99_000, { open })).toEqual([])
  // they count from a checkpoint on: an incident lasts until then, and none is opened for it
  const wanted = { state: 'exposed' as const, fullPageWrites: true, imagesInForce: true }
  expect(protectedBy(wanted, 99_000, { open })).toEqual(['page-unprotected:i-1'])
  expect(protectedBy(wanted, 99_000)).toEqual([])
  // of a standby the setting says nothing
  expect(protectedBy({ ...wanted, imagesInForce: null }, 99_000)).toEqual(['page-unprotected:i-1'])
  expect(protectedBy({ state: 'exposed' }, 99_000, { known: [known({ busy: true })] })).toEqual([])
  expect(protectedBy({ state: 'overridden' }, 10_000)).toEqual(['page-guard-off:i-1'])
})

test('a source that comes and goes makes one incident, not one each time', () => {
  const images = { state: 'full_page_writes' as const, imagesInForce: true, since: 10_000 }
  const looks: Partial<Protection>[] = [
    { state: 'exposed', sources: [pageSource(false)] },
    ...[false, true, false, true, false, true].map((healthy) => ({
      ...images,
      sources: [pageSource(healthy)],
    })),
    { state: 'exposed', sources: [pageSource(true)] },
  ]
  let open = opened()
  for (const look of looks) {
    open = opened(...protectedBy(look, 20_000, { open }))
    expect([...open.keys()]).toEqual(['page-unprotected:i-1'])
  }
  expect(protectedBy({ sources: [pageSource(true)] }, 20_000, { open })).toEqual([])
})

test('why pages are exposed is what the engine says, unless no source is healthy', () => {
  const told = (p: Partial<Protection>) => deriveIncidents(protecting({ state: 'exposed', ...p }))[0]
  const off = 'polar_page_repair_policy is off'
  expect(told({ why: off, sources: [pageSource(true)] })?.detail).toBe(`The engine reports: ${off}.`)
  expect(told({ why: off, sources: [pageSource(false)] })?.detail).toBe(`The engine reports: ${off}.`)
  expect(told({ why: off, sources: [pageSource(true)] })?.hint).not.toContain('standby')
  // its positions change with every look
  const behind = 'source "s": it has flushed 0/3000060, the last checkpoint\'s redo point is 0/4000028'
  expect(told({ why: behind, sources: [pageSource(false)] })?.detail).toBe(
    'No page repair source is healthy.',
  )
  // of the flashback log's words and a source's the latter change, too
  const log = 'flashback log: its window ended: a record is damaged'
  expect(told({ why: `${log}; ${behind}`, sources: [pageSource(false)] })?.detail).toBe(
    'No page repair source is healthy.',
  )
  expect(told({ why: log, sources: [pageSource(false)] })?.detail).toBe(`The engine reports: ${log}.`)
  expect(told({ why: 'polar_page_repair_sources is empty' })?.detail).toBe(
    'No standby is a page repair source.',
  )
})

test('the guard of a standby writes no images, and nobody says so', () => {
  const told = (p: Partial<Protection>) =>
    deriveIncidents(protecting({ state: 'exposed', imagesInForce: null, ...p }))[0]
  expect(told({ sources: [pageSource(false)] })).toMatchObject({
    detail: 'No page repair source is healthy.',
    hint: 'Its primary decides about full-page images. Bring back its primary or another standby to fetch pages from.',
  })
  expect(told({})?.detail).toBe('No other member is a page repair source.')
  const late = 'this server shall stay behind, so it would get no page of now'
  expect(told({ why: late, sources: [pageSource(true)] })).toMatchObject({
    detail: `The engine reports: ${late}.`,
    hint: 'Its primary decides about full-page images.',
  })
})

/** The incidents of an instance that says this of replication. */
function replicating(
  said: Partial<ReplicationObserved>,
  { role = 'primary', ...more }: Partial<HostSeen> & { role?: 'primary' | 'standby' } = {},
) {
  const s = seen(more)
  for (const instance of s.report.instances) Object.assign(instance, { role, replication: replication(said) })
  return deriveIncidents(s)
}

test('commits that wait for standbys that are not connected are an incident until enough of them are', () => {
  const any1 = { synchronousStandbyNames: 'ANY 1 ("two", "three")' }
  expect(replicating({ ...any1, waitingCommits: 3 })).toMatchObject([
    {
      key: 'commits-wait:i-1',
      severity: 'critical',
      detail: '0 of 1 synchronous standbys are connected.',
    },
  ])
  expect(replicating({ ...any1, standbys: [standbySeen('two', 'quorum')] })).toEqual([])
  // one that only catches up, or that nobody waits for, confirms nothing
  const catchingUp = { ...standbySeen('two', 'quorum'), state: 'catchup' }
  expect(replicating({ ...any1, standbys: [catchingUp, standbySeen('four', 'async')] })).toHaveLength(1)
  const first2 = { synchronousStandbyNames: 'FIRST 2 ("two", "three")' }
  expect(replicating({ ...first2, standbys: [standbySeen('two', 'sync')] })).toMatchObject([
    { detail: '1 of 2 synchronous standbys are connected.' },
  ])
  expect(replicating({ ...any1, synchronousCommit: 'local' })).toEqual([])
  expect(replicating({ synchronousStandbyNames: '' })).toEqual([])
  expect(replicating(any1, { known: [known({ busy: true })] })).toEqual([])
})

test('a second member that takes writes is an incident until it is a standby, or the primary', () => {
  const standby = [known({ memberRole: 'standby' })]
  expect(replicating({}, { known: standby })).toMatchObject([
    { key: 'second-primary:i-1', severity: 'critical', title: expect.stringContaining('accepts writes') },
  ])
  expect(replicating({}, { known: [known({ memberRole: 'fenced' })] })).toMatchObject([
    { key: 'second-primary:i-1' },
  ])
  expect(replicating({}, { known: standby, role: 'standby' })).toEqual([])
  // an older record does not say who it is; what was seen before it was found to be older is not over by that
  const inDoubt = new Set(['i-1'])
  expect(replicating({}, { known: standby, inDoubt })).toEqual([])
  expect(replicating({}, { known: standby, inDoubt, open: opened('second-primary:i-1') })).toHaveLength(1)
  expect(replicating({}, { known: [known({ memberRole: 'primary' })] })).toEqual([])
  // in the middle of a switchover both may say so for a moment
  expect(replicating({}, { known: [known({ memberRole: 'standby', busy: true })] })).toEqual([])
})

test('a slot nobody uses is an incident once it keeps a gigabyte of WAL or has lost what it kept, until it is used', () => {
  const slots = (more: Partial<ReplicationObserved['slots'][number]>) =>
    replicating({
      slots: [
        {
          name: 'floe_two',
          active: false,
          restartLsn: null,
          walStatus: 'extended',
          retainedBytes: SLOT_RETAINED_BYTES,
          ...more,
        },
      ],
    })
  expect(slots({})).toMatchObject([
    {
      key: 'slot-unused:i-1:floe_two',
      severity: 'warning',
      detail: expect.stringContaining('It retains at least'),
    },
  ])
  expect(slots({ retainedBytes: SLOT_RETAINED_BYTES - 1 })).toEqual([])
  expect(slots({ retainedBytes: null, walStatus: null })).toEqual([])
  expect(slots({ retainedBytes: null, walStatus: 'lost' })).toMatchObject([
    { key: 'slot-unused:i-1:floe_two', detail: 'WAL that its standby needs has been removed.' },
  ])
  expect(slots({ active: true })).toEqual([])
})

test('drift of settings is an incident until it is resolved', () => {
  const drifted = seen()
  const [instance] = drifted.report.instances
  if (instance)
    instance.settingDrift = [
      { name: 'work_mem', file: 'postgresql.auto.conf', line: 3, was: null, is: '1GB' },
    ]
  expect(deriveIncidents(drifted)).toMatchObject([
    { key: 'setting-drift:i-1', severity: 'warning', detail: 'work_mem in postgresql.auto.conf.' },
  ])
  if (instance) instance.settingDrift = []
  expect(deriveIncidents(drifted)).toEqual([])
})

test('an instance missing from a report is an incident only when it was there and nobody works on it', () => {
  const missing = (more: Partial<KnownInstance>) => keys(seen({ state: null, known: [known(more)] }))
  expect(missing({})).toEqual(['instance-missing:i-1'])
  expect(missing({ seen: false })).toEqual([])
  expect(missing({ created: false })).toEqual([])
  expect(missing({ busy: true })).toEqual([])
  expect(missing({ deleted: true })).toEqual([])
  const [{ hint } = { hint: '' }] = deriveIncidents(seen({ state: null, known: [known({})] }))
  expect(hint).toContain(`./floe instance adopt ${known({}).name}`)
})

test('an instance nobody registered, and a clock that is off, are told', () => {
  expect(keys(seen({ known: [] }))).toEqual(['instance-unregistered:i-1'])
  expect(keys(seen({ clockSkewMs: -5_001 }))).toEqual(['host-clock:h-1'])
  expect(keys(seen({ clockSkewMs: 4_999 }))).toEqual([])
})

test('a host is offline after 30 s of silence, not before', () => {
  const silent = (silentMs: number) =>
    hostOffline({
      hostId: 'h-1',
      hostName: 'first',
      silentMs,
      fault: { code: 'agent.unreachable', message: 'no' },
    })
  expect(silent(29_999)).toBeUndefined()
  expect(silent(30_000)).toMatchObject({ key: 'host-offline:h-1', severity: 'critical' })
})

test('an instance that was removed and is still named is an incident, unless the report may be older than its removal', () => {
  expect(keys(seen({ known: [known({ deleted: true })] }))).toEqual([])
  const left = deriveIncidents(seen({ known: [known({ deleted: true, deletedBefore: true })] }))
  expect(left.map((i) => i.key)).toEqual(['instance-left:i-1'])
  expect(left[0]?.detail).toContain('/i/i-1')
  expect(keys(seen({ state: null, known: [known({ deleted: true, deletedBefore: true })] }))).toEqual([])
})

test('what an operation brings about for a moment opens nothing, and what was open before it stays', () => {
  const drifted = (more: Partial<HostSeen>) => {
    const s = seen(more)
    for (const i of s.report.instances)
      i.settingDrift = [{ name: 'port', file: 'floe.conf', line: 1, was: null, is: '1' }]
    return keys(s)
  }
  const busy = [known({ busy: true })]
  expect(drifted({})).toEqual(['setting-drift:i-1'])
  expect(drifted({ known: busy })).toEqual([])
  expect(drifted({ known: busy, open: opened('setting-drift:i-1') })).toEqual(['setting-drift:i-1'])
  const waiting = { synchronousStandbyNames: 'ANY 1 ("two")' }
  const stays = replicating(waiting, { known: busy, open: opened('commits-wait:i-1') })
  expect(stays.map((i) => i.key)).toEqual(['commits-wait:i-1'])
  // what is down is down, whoever works on it
  expect(keys(seen({ state: 'crashed', known: busy }))).toEqual(['instance-crashed:i-1'])
})

test('a crash keeps its cause while it is started again, and says why that failed', () => {
  const told = (state: 'crashed' | 'starting', because: string, before: string | null) => {
    const s = seen({ state: 'crashed', open: new Map([['instance-crashed:i-1', before]]) })
    for (const i of s.report.instances) Object.assign(i, { state, because })
    return deriveIncidents(s)[0]?.detail ?? null
  }
  const cause = told('crashed', 'out of memory', null)
  expect(cause).toBe('out of memory')
  const starting = told('starting', 'a start was ordered after a crash', cause)
  expect(starting).toBe('out of memory')
  const again = told('crashed', 'could not bind the port', starting)
  expect(again).toBe('out of memory\nWhen it was started again: could not bind the port')
  expect(told('crashed', 'could not bind the port', again)).toBe(again)
  expect(told('starting', 'a start was ordered after a crash', again)).toBe(again)
  expect(told('crashed', 'disk full', again)).toBe('out of memory\nWhen it was started again: disk full')
  expect(told('crashed', 'out of memory', cause)).toBe('out of memory')
})

test('an order to fence that does not fit what the host reports waits for a person', () => {
  const order = (fenceTimeline: number | null, more: Partial<KnownInstance> = {}) => {
    const s = seen({
      known: [known({ memberRole: 'fenced', fenceOrderedAt: new Date(0), fenceTimeline, ...more })],
    })
    const [instance] = s.report.instances
    if (instance) Object.assign(instance, { role: 'standby', timeline: 5 })
    return s
  }
  expect(keys(order(5))).toEqual([])
  expect(keys(order(6))).toEqual([])
  const [newer] = deriveIncidents(order(4))
  expect(newer).toMatchObject({ key: 'fence-waits:i-1', severity: 'critical' })
  expect(newer?.detail).toContain('timelines up to 4; "one" is on timeline 5')
  // orders of earlier versions
  expect(deriveIncidents(order(null))[0]?.detail).toBe(
    'The timeline for which its fencing was ordered is unknown.',
  )
  // what its agent saw and the report does not tell
  const refused = { code: 'fence.newer_timeline', message: 'not the one', detail: 'It is on timeline 9.' }
  expect(deriveIncidents(order(5, { fenceRefusal: refused }))[0]?.detail).toBe('It is on timeline 9.')
  const done = order(4)
  Object.assign(done.report.instances[0] ?? {}, { fenced: { at: 1, reason: 'another one took over' } })
  expect(keys(done)).toEqual([])
})

test('what an agent says of an instance’s processes is an incident, and it is not taken for crashed', () => {
  const s = seen()
  const fault = { code: 'instance.no_postmaster', message: 'processes work on', detail: 'd', hint: 'h' }
  Object.assign(s.report.instances[0] ?? {}, { state: 'stopping', processFault: fault })
  expect(deriveIncidents(s)).toEqual([
    {
      key: 'instance-processes:i-1',
      severity: 'critical',
      title: 'processes work on',
      detail: 'd',
      hint: 'h',
      hostId: 'h-1',
      instanceId: 'i-1',
    },
  ])
})

test('memory near its limit is an incident for as long as the agent says so', () => {
  const s = seen()
  const ordered = { ...noLimits, memoryHigh: 3 * 1024 ** 3, memoryMax: 4 * 1024 ** 3 }
  const limits: LimitsObserved = {
    driver: 'cgroup-v1',
    whyNot: null,
    ordered,
    inForce: ordered,
    gaps: [],
    exempt: [],
    devices: { data: 'vda', wal: 'vda' },
    memoryNearLimit: true,
    outOfMemoryKills: 0,
  }
  Object.assign(s.report.instances[0] ?? {}, { limits })
  expect(deriveIncidents(s)).toEqual([
    expect.objectContaining({
      key: 'memory-near-limit:i-1',
      severity: 'warning',
      detail: expect.stringMatching(/more than 90 % of 3 GB .* At 4 GB the kernel kills/),
    }),
  ])
  limits.memoryNearLimit = false
  expect(deriveIncidents(s)).toEqual([])
})

test('a kill for want of memory is an incident for an hour, which says what was killed, why, and what to do', () => {
  const s = seen()
  const limits: LimitsObserved = {
    ...{ driver: 'cgroup-v2', whyNot: null, ordered: noLimits, inForce: noLimits, gaps: [], exempt: [] },
    devices: { data: 'vda', wal: 'vda' },
    memoryNearLimit: false,
    outOfMemoryKills: 1,
    lastMemoryKill: { at: 5_000, process: { pid: 77, name: 'postgres' }, cause: 'limit' },
  }
  Object.assign(s.report.instances[0] ?? {}, { limits })
  expect(deriveIncidents(s)).toMatchObject([
    {
      key: 'memory-kill:i-1',
      instanceId: 'i-1',
      detail: expect.stringMatching(
        /^At 1970-01-01T00:00:05\.000Z "postgres" \(PID 77\) was killed at the memory limit .* ends all sessions/,
      ),
      hint: expect.stringContaining('--memory-max SIZE'),
    },
  ])
  limits.lastMemoryKill = { at: 5_000, process: { pid: 78, name: 'dd' }, cause: 'host' }
  expect(deriveIncidents(s)).toMatchObject([
    {
      detail: expect.stringMatching(
        /"dd" \(PID 78\) was killed because the host had no memory left.* sessions go on/,
      ),
      hint: expect.stringContaining('./floe host map'),
    },
  ])
  limits.lastMemoryKill = { at: 5_000, process: null, cause: null }
  expect(deriveIncidents(s)).toMatchObject([{ detail: expect.stringContaining('not known which') }])
  // a start begins to count from 0: what was told stays told
  limits.outOfMemoryKills = 0
  s.report.at = 5_000 + 3_599_000
  expect(keys(s)).toEqual(['memory-kill:i-1'])
  s.report.at = 5_000 + 3_600_000
  expect(keys(s)).toEqual([])
})

/** A host whose instance says this of its flashback log. */
function flashing(log: Partial<FlashbackLog>, at = 20_000, more: Partial<HostSeen> = {}): HostSeen {
  const s = seen(more)
  const [instance] = s.report.instances
  if (instance)
    instance.flashback = {
      state: 'on',
      mode: 'async',
      oldestAt: 10_000,
      newestPointAt: 10_000,
      points: 1,
      windowBeganAt: 10_000,
      windowsEnded: 0,
      lastEndedAt: null,
      lastEndReason: null,
      sizeBytes: 0,
      bytesPerSecond: null,
      failures: 0,
      limits: { recoveryArea: true, rotationMs: 10_800_000, keepBytes: 0, maxBytes: null },
      ...log,
    }
  s.report.at = at
  return s
}

test('a window that ended is an incident for an hour, with the engine’s reason', () => {
  const ended = { windowsEnded: 1, lastEndedAt: 20_000, lastEndReason: 'the operating system crashed' }
  expect(keys(flashing({}))).toEqual([])
  expect(deriveIncidents(flashing(ended))).toMatchObject([
    {
      key: 'flashback-window-ended:i-1',
      detail: expect.stringContaining('the operating system crashed'),
      hint: expect.stringContaining('sync'),
    },
  ])
  expect(keys(flashing(ended, 20_000 + 3_599_000))).toEqual(['flashback-window-ended:i-1'])
  expect(keys(flashing(ended, 20_000 + 3_600_000))).toEqual([])
  expect(keys(flashing({ ...ended, state: 'off' }))).toEqual([])
})

test('a flashback log without a window is one as long as it waits; an operation on the instance opens none', () => {
  const waiting = { state: 'waiting', windowBeganAt: null } as const
  expect(keys(flashing(waiting))).toEqual(['flashback-log-waiting:i-1'])
  expect(
    keys(flashing({ ...waiting, state: 'on' }, 0, { open: opened('flashback-log-waiting:i-1') })),
  ).toEqual([])
  expect(keys(flashing(waiting, 0, { known: [known({ busy: true })] }))).toEqual([])
})

test('a shared port that no dispatcher serves is one for as long as that lasts', () => {
  const about = (
    server: NonNullable<HostSeen['report']['instances'][number]['sharedServer']> | null,
    more: Partial<HostSeen> = {},
  ) => {
    const s = seen(more)
    const [instance] = s.report.instances
    if (instance) instance.sharedServer = server
    return s
  }
  const down = { port: 6_500, enabled: true, dispatcher: 'absent' } as const
  expect(deriveIncidents(about(down))).toMatchObject([
    {
      key: 'shared-server-down:i-1',
      severity: 'critical',
      detail: expect.stringContaining('clients of port 6500 cannot connect'),
      hint: expect.stringContaining('polar_ss_port=PORT'),
    },
  ])
  expect(deriveIncidents(about({ ...down, dispatcher: 'stopped' }))).toMatchObject([
    { detail: expect.stringContaining('stopped by a signal'), hint: expect.stringContaining('kill -CONT') },
  ])
  // set by hand to the instance's own port: no other program is to end
  const own = about(down)
  for (const instance of own.report.instances) instance.port = 6_500
  expect(deriveIncidents(own)).toMatchObject([
    {
      detail: expect.stringContaining('port 6500 is the instance’s own'),
      hint: expect.stringMatching(/^Choose another port/),
    },
  ])
  // one of several: which, and what it costs
  const works = { state: 'running', active: true, relayActive: null } as const
  const some = (second: Partial<DispatcherSeen>) =>
    about({
      ...down,
      dispatcher: 'running',
      dispatchers: [
        { ...works, number: 1 },
        { ...works, number: 2, ...second },
      ],
    })
  expect(keys(some({}))).toEqual([])
  expect(keys(some({ active: null }))).toEqual([])
  expect(deriveIncidents(some({ active: false }))).toMatchObject([
    {
      key: 'shared-server-down:i-1',
      title: expect.stringContaining('does not serve all clients'),
      detail: expect.stringContaining('The dispatcher 2 of 2 runs and does nothing: its sessions wait'),
      hint: expect.stringContaining('Restart the instance'),
    },
  ])
  expect(deriveIncidents(some({ state: 'absent' }))).toMatchObject([
    { hint: expect.stringContaining('max_worker_processes') },
  ])
  expect(deriveIncidents(some({ relayActive: false }))).toMatchObject([
    { detail: expect.stringContaining('clients that use TLS wait') },
  ])
  // whoever logs in would have a backend alone: the port is as dead
  expect(keys(about({ ...down, enabled: false }))).toEqual(['shared-server-down:i-1'])
  const open = { open: opened('shared-server-down:i-1') }
  expect(keys(about({ ...down, dispatcher: 'running' }, open))).toEqual([])
  expect(keys(about({ port: null, enabled: true, dispatcher: null }, open))).toEqual([])
  // unknown: an older agent, or an instance without the views
  expect(keys(about(null, open))).toEqual([])
  // an operation restarts it; one that was open stays so
  expect(keys(about(down, { known: [known({ busy: true })] }))).toEqual([])
  expect(keys(about(down, { known: [known({ busy: true })], ...open }))).toEqual(['shared-server-down:i-1'])
  const stopped = about(down)
  for (const instance of stopped.report.instances) instance.state = 'stopped'
  expect(keys(stopped)).not.toContain('shared-server-down:i-1')
})
