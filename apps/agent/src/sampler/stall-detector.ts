import type { StallCause, StallRecord, WaitCount } from '@floe/telemetry'
import { z } from 'zod'

/** What one tick saw of an instance's work. Counters as they stand. */
export type WorkSeen = {
  /** ms since the epoch. */
  at: number
  /** Start of this life of the postmaster. */
  life: number
  /** Transactions committed, without the agent's own; null where the counter cannot be compared. */
  commits: number | null
  /** Grows when a transaction that wrote has ended. */
  endedTransactions: number | null
  /** Sessions of clients whose transaction lasts, by what they wait for; `event` is null of those that wait for nothing. */
  waits: readonly WaitSeen[]
  /** What those wait for who hold a lock that others wait for, where that is no lock itself. */
  holders: readonly Pick<WaitSeen, 'type' | 'event' | 'count'>[]
  checkpoint: StallRecord['checkpoint']
  checkpointerStopped: boolean
  /** The function of the kernel that its process hangs in, empty where that is not reported; null: it does not. */
  checkpointerHangsIn: string | null
  /** Devices with a limit. */
  devices: readonly DeviceSeen[]
  /** Milliseconds in which all devices of the instance had something to do; null: not known, or none has a limit. */
  devicesBusyMs: number | null
  /** How long some session waited for storage. */
  ioWaitSeconds: number | null
  cpuThrottledSeconds: number | null
  /** How long some session waited until the kernel had taken memory back. */
  memoryWaitSeconds: number | null
}
export type WaitSeen = { type: string | null; event: string | null; count: number; ageMs: number }
export type DeviceSeen = {
  name: string
  /** Each use that is limited: what was used since the group was made, and how much of it is allowed a second. */
  uses: readonly { used: number; perSecond: number }[]
}

/** Nobody has commits one by one for long: as many transactions a second that write nothing are those of who watches. */
const WATCHERS_PER_SECOND = 2
/** Waiting for storage that has no limit is a stall only where something was committed this long before: else it is a report. */
const FLOW_MS = 60_000
/** From this share of a limit on a device is at it. */
const AT_LIMIT = 0.8
/** A device that has something to do for less than this share of the time does not keep anybody waiting. */
const IDLE = 0.1
/** From this share of the time on processors were held back by their limit, or sessions waited for memory. */
const HELD = 0.5
/** Without a sample for this long nothing is known of the time between. */
const HOLE_MS = 10_000
const WAITS_TOLD = 8

type Open = {
  record: StallRecord
  counts: Map<string, WaitCount>
  /** By what was waited for at the root. */
  votes: Map<Root, number>
  throttled: { samples: number; names: Map<string, number>; idle: number; cpu: number; memory: number }
  samples: number
}
type Root = 'lock' | 'storage' | 'checkpointer' | 'standby' | 'other'

/** Finds stalls in samples: time in which sessions had work, and for at least `afterMs` none of it was committed. */
export class StallDetector {
  readonly #afterMs: () => number
  #before: WorkSeen | null = null
  /** The last sample that showed a commit since the one before it. */
  #progressAt = Number.NEGATIVE_INFINITY
  #open: Open | null = null

  /** `afterMs` may become another one: what has begun stays one. */
  constructor(afterMs: () => number) {
    this.#afterMs = afterMs
  }

  /** The one that lasts; `endedAt` is the newest sample. */
  get running(): StallRecord | null {
    return this.#open && told(this.#open)
  }

  /** The next sample; answers a stall that has ended. */
  see(now: WorkSeen): StallRecord | null {
    const before = this.#before
    this.#before = now
    if (!before || before.life !== now.life || now.at <= before.at || now.at - before.at > HOLE_MS) {
      this.#progressAt = now.at
      return this.#close(null)
    }
    if (progressed(before, now)) {
      this.#progressAt = now.at
      return this.#close(now.at)
    }
    const waiting = now.waits.filter((w) => w.event !== null)
    const held = {
      cpu: shareOfTime('cpuThrottledSeconds', before, now) >= HELD,
      memory: shareOfTime('memoryWaitSeconds', before, now) >= HELD,
      idle: heldBackWhileIdle(before, now),
    }
    // the kernel holds back whom the server sees at work
    const stuck = waiting.length > 0 ? waiting : held.cpu || held.memory ? now.waits : []
    if (stuck.length === 0) return this.#close(now.at)
    const oldest = Math.max(...stuck.map((w) => w.ageMs))
    const startedAt = Math.max(this.#progressAt, now.at - oldest)
    const atLimit = devicesAtLimit(before, now)
    if (!this.#open) {
      if (now.at - startedAt < this.#afterMs()) return null
      const onlyStorage = stuck.every((w) => rootOf(w) === 'storage')
      if (onlyStorage && atLimit.length === 0 && !held.idle && now.at - this.#progressAt > FLOW_MS)
        return null
    }
    this.#open ??= begin(startedAt)
    add(this.#open, now, stuck, atLimit, held)
    return null
  }

  /** The engine has ended, or nobody knows any more; answers the stall that lasted until the newest sample. */
  end(): StallRecord | null {
    this.#before = null
    return this.#close(null)
  }

  #close(at: number | null): StallRecord | null {
    const open = this.#open
    this.#open = null
    if (!open) return null
    const record = told(open)
    return at === null ? record : { ...record, endedAt: at }
  }
}

function progressed(before: WorkSeen, now: WorkSeen): boolean {
  const wrote = (now.endedTransactions ?? 0) - (before.endedTransactions ?? 0)
  if (before.endedTransactions !== null && now.endedTransactions !== null && wrote > 0) return true
  if (before.commits === null || now.commits === null) return false
  return now.commits - before.commits > (WATCHERS_PER_SECOND * (now.at - before.at)) / 1_000
}

/**
 * One large request is counted once, when it is made or when it is let through, and held back for as long as its bytes take:
 * meanwhile sessions wait for storage, and none of the storage has anything to do.
 */
function heldBackWhileIdle(before: WorkSeen, now: WorkSeen): boolean {
  if (now.devices.length === 0 || before.devicesBusyMs === null || now.devicesBusyMs === null) return false
  const busy = (now.devicesBusyMs - before.devicesBusyMs) / (now.at - before.at)
  return busy >= 0 && busy < IDLE && shareOfTime('ioWaitSeconds', before, now) >= HELD
}

function shareOfTime(
  seconds: 'cpuThrottledSeconds' | 'memoryWaitSeconds' | 'ioWaitSeconds',
  before: WorkSeen,
  now: WorkSeen,
): number {
  const [was, is] = [before[seconds], now[seconds]]
  return was === null || is === null ? 0 : ((is - was) * 1_000) / (now.at - before.at)
}

function devicesAtLimit(before: WorkSeen, now: WorkSeen): string[] {
  const seconds = (now.at - before.at) / 1_000
  return now.devices.flatMap(({ name, uses }) => {
    const earlier = before.devices.find((d) => d.name === name)
    const atLimit = uses.some(({ used, perSecond }, i) => {
      const was = earlier?.uses[i]
      return was?.perSecond === perSecond && (used - was.used) / seconds >= perSecond * AT_LIMIT
    })
    return atLimit ? [name] : []
  })
}

/** What a wait comes down to. */
export function rootOf({ type, event }: Pick<WaitSeen, 'type' | 'event'>): Root {
  if (type === 'Lock') return 'lock'
  if (type === 'IPC' && event === 'SyncRep') return 'standby'
  if ((type === 'IPC' && event?.startsWith('Checkpoint')) || event?.startsWith('CheckpointerComm'))
    return 'checkpointer'
  // who waits for another's write or flush waits for storage, too
  if (type === 'IO' || event === 'WALWrite' || event === 'WALInsert' || event === 'BufferIO') return 'storage'
  return 'other'
}

function begin(startedAt: number): Open {
  return {
    record: {
      startedAt,
      endedAt: startedAt,
      cause: 'other',
      waits: [],
      sessions: 0,
      checkpoint: null,
      checkpointerStopped: false,
      checkpointerHangsIn: null,
      device: null,
    },
    counts: new Map(),
    votes: new Map(),
    throttled: { samples: 0, names: new Map(), idle: 0, cpu: 0, memory: 0 },
    samples: 0,
  }
}

function add(
  open: Open,
  now: WorkSeen,
  stuck: readonly WaitSeen[],
  atLimit: string[],
  held: { cpu: boolean; memory: boolean; idle: boolean },
): void {
  const { record, counts, votes, throttled } = open
  open.samples++
  record.endedAt = now.at
  record.sessions = Math.max(
    record.sessions,
    stuck.reduce((n, w) => n + w.count, 0),
  )
  record.checkpoint = now.checkpoint ?? record.checkpoint
  record.checkpointerStopped ||= now.checkpointerStopped
  record.checkpointerHangsIn = now.checkpointerHangsIn ?? record.checkpointerHangsIn
  // who waits for a lock waits for what its holder waits for
  const [holder] = [...now.holders].sort((a, b) => b.count - a.count)
  for (const wait of stuck) {
    if (wait.type === null || wait.event === null) continue
    const key = `${wait.type} ${wait.event}`
    const known = counts.get(key)
    if (known) known.count += wait.count
    else counts.set(key, { type: wait.type, event: wait.event, count: wait.count })
    const root = rootOf(wait.type === 'Lock' && holder ? holder : wait)
    votes.set(root, (votes.get(root) ?? 0) + wait.count)
  }
  if (atLimit.length > 0) throttled.samples++
  for (const name of atLimit) throttled.names.set(name, (throttled.names.get(name) ?? 0) + 1)
  if (held.idle) throttled.idle++
  // of several nobody knows which of them holds back
  const [only, ...more] = now.devices
  if (held.idle && atLimit.length === 0 && only && more.length === 0)
    throttled.names.set(only.name, (throttled.names.get(only.name) ?? 0) + 1)
  if (held.cpu) throttled.cpu++
  if (held.memory) throttled.memory++
}

function told({ record, counts, votes, throttled, samples }: Open): StallRecord {
  const byCount = <T>(all: Iterable<readonly [T, number]>) => [...all].sort((a, b) => b[1] - a[1])[0]?.[0]
  const root = byCount(votes)
  const cause = causeOf(root, {
    checkpointerStopped: record.checkpointerStopped,
    checkpointerHangs: record.checkpointerHangsIn !== null,
    atLimit: throttled.samples * 2 >= samples,
    idle: throttled.idle * 2 >= samples,
    cpu: throttled.cpu * 2 >= samples,
    memory: throttled.memory * 2 >= samples,
  })
  return {
    ...record,
    cause,
    device: cause === 'limited-device' ? (byCount(throttled.names) ?? null) : null,
    waits: [...counts.values()].sort((a, b) => b.count - a.count).slice(0, WAITS_TOLD),
  }
}

function causeOf(
  root: Root | undefined,
  was: {
    checkpointerStopped: boolean
    checkpointerHangs: boolean
    atLimit: boolean
    idle: boolean
    cpu: boolean
    memory: boolean
  },
): StallCause {
  if (root === 'lock' || root === 'standby' || root === 'checkpointer') return root
  // a stopped one may hold what others wait for: a buffer that it writes, a place in its queue
  if (root === 'other' && was.checkpointerStopped) return 'checkpointer'
  if (was.atLimit && root !== undefined) return 'limited-device'
  if (root === 'storage' && was.idle) return 'limited-device'
  // one that hangs does so for storage: whose own reads and writes hang, too, wait for storage rather than for it
  if (root === 'other' && was.checkpointerHangs) return 'checkpointer'
  if (root === 'storage' && was.checkpointerStopped) return 'checkpointer'
  // pages that the kernel took back are read again: those reads are for want of memory
  if (was.memory) return 'memory'
  if (root === 'storage') return 'storage'
  return was.cpu ? 'limited-cpu' : 'other'
}

const Seen = z.object({
  type: z.string().max(64).nullable(),
  event: z.string().max(64).nullable(),
  count: z.number().int(),
})
const Stuck = z.object({
  waits: z.array(Seen.extend({ ageMs: z.number() })),
  holders: z.array(Seen),
})

/** The part of a tick's row that reports work; the instance's superuser may have made it say anything. */
export function stuckFromRow(row: Record<string, unknown>): Pick<WorkSeen, 'waits' | 'holders'> {
  const parsed = Stuck.safeParse(row.stuck)
  return parsed.success ? parsed.data : { waits: [], holders: [] }
}
