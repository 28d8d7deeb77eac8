import { z } from 'zod'
import { Fault, fault } from './fault'
import { formatBytes } from './format'

export type LimitUnit = 'cores' | 'bytes' | 'IOPS' | 'bytes/s'
type LimitRecord = {
  /** What a person reads. */
  title: string
  /** Option of the command line, without its dashes. */
  option: string
  unit: LimitUnit
  /** Less would stop the engine rather than limit it. */
  least: number
  of: 'cpu' | 'memory' | 'data' | 'wal'
}

const MB = 1024 ** 2
/** More than any machine has; the kernel counts a quota in whole microseconds. */
const MOST_CORES = 65_536
const io = (of: 'data' | 'wal', what: 'read' | 'write', unit: 'IOPS' | 'bytes/s'): LimitRecord => ({
  title: `${of === 'data' ? 'Data' : 'WAL'} ${what === 'read' ? 'reads' : 'writes'}`,
  option: `${of}-${what}-${unit === 'IOPS' ? 'iops' : 'bytes'}`,
  unit,
  least: unit === 'IOPS' ? 10 : MB / 16,
  of,
})

/** Every limit that an instance can have, once: form, command line, report and agent go by this list. */
export const limitRecords = {
  cpu: { title: 'CPU', option: 'cpu', unit: 'cores', least: 0.05, of: 'cpu' },
  memoryHigh: { title: 'Memory, high', option: 'memory-high', unit: 'bytes', least: 64 * MB, of: 'memory' },
  memoryMax: { title: 'Memory, max', option: 'memory-max', unit: 'bytes', least: 64 * MB, of: 'memory' },
  dataReadIops: io('data', 'read', 'IOPS'),
  dataWriteIops: io('data', 'write', 'IOPS'),
  dataReadBytes: io('data', 'read', 'bytes/s'),
  dataWriteBytes: io('data', 'write', 'bytes/s'),
  walReadIops: io('wal', 'read', 'IOPS'),
  walWriteIops: io('wal', 'write', 'IOPS'),
  walReadBytes: io('wal', 'read', 'bytes/s'),
  walWriteBytes: io('wal', 'write', 'bytes/s'),
} as const satisfies Record<string, LimitRecord>

export type LimitName = keyof typeof limitRecords
export const limitNames = Object.keys(limitRecords) as LimitName[]
export const limitRecord = (name: LimitName): LimitRecord => limitRecords[name]

const shapeOf = <S extends z.ZodType>(value: S) =>
  Object.fromEntries(limitNames.map((name) => [name, value])) as Record<LimitName, S>

/** The limits of an instance; null is none. What an older side does not report is none. */
export const InstanceLimits = z.object(shapeOf(z.number().positive().nullable().default(null)))
export type InstanceLimits = z.infer<typeof InstanceLimits>

/** Limits that are to be others: null takes one away, what is left out stays. */
export const LimitChanges = z.object(shapeOf(z.number().positive().nullable().optional()))
export type LimitChanges = z.infer<typeof LimitChanges>

export const noLimits: InstanceLimits = InstanceLimits.parse({})

export const hasLimits = (limits: InstanceLimits): boolean => limitNames.some((name) => limits[name] !== null)

export const withLimits = (before: InstanceLimits, changes: LimitChanges): InstanceLimits =>
  InstanceLimits.parse(
    Object.fromEntries(limitNames.map((n) => [n, changes[n] === undefined ? before[n] : changes[n]])),
  )

/** Limits by name that differ, with both values. */
export const changedLimits = (before: InstanceLimits, after: InstanceLimits) =>
  limitNames
    .filter((name) => before[name] !== after[name])
    .map((name) => ({ name, before: before[name], after: after[name] }))

/** A limit that was changed, for people: `CPU: none → 0.7 cores`. */
export const limitChangeWords = (change: { name: LimitName; before: number | null; after: number | null }) =>
  `${limitRecord(change.name).title}: ${formatLimit(change.name, change.before)} → ${formatLimit(change.name, change.after)}`

/** Why an instance cannot have these limits; null where it can. */
export function whyNoLimits(limits: InstanceLimits): Fault | null {
  for (const name of limitNames) {
    const value = limits[name]
    const { least, title, unit } = limitRecord(name)
    if (value === null) continue
    if (value < least)
      return {
        code: 'limit.out_of_range',
        message: `limit "${title}" of ${formatLimit(name, value)} is too small`,
        detail: `The smallest is ${formatLimit(name, least)}.`,
      }
    if (unit === 'cores' ? value > MOST_CORES : value > Number.MAX_SAFE_INTEGER)
      return {
        code: 'limit.out_of_range',
        message: `limit "${title}" of ${value} is too large`,
        hint: 'To have no limit, take it away.',
      }
    if (unit !== 'cores' && !Number.isSafeInteger(value))
      return {
        code: 'limit.not_whole',
        message: `limit "${title}" must be a whole number, not ${value}`,
      }
  }
  const { memoryHigh, memoryMax } = limits
  if (memoryHigh !== null && memoryMax !== null && memoryHigh > memoryMax)
    return {
      code: 'limit.high_above_max',
      message: 'limit "Memory, high" must not be above "Memory, max"',
      detail: `High is ${formatLimit('memoryHigh', memoryHigh)}, max is ${formatLimit('memoryMax', memoryMax)}.`,
      hint: 'From high on the kernel takes memory back and slows the instance down; at max it kills.',
    }
  return null
}

const byteUnits = { B: 1, kB: 1024, MB, GB: 1024 * MB, TB: MB * MB } as const

/** What a text means for a limit, memory by PostgreSQL's units; `none` takes the limit away. Throws `limit.not_a_value`. */
export function parseLimit(name: LimitName, text: string): number | null {
  const { unit, title } = limitRecord(name)
  const said = text.trim()
  if (/^none$/i.test(said)) return null
  const bytes = unit === 'bytes' || unit === 'bytes/s'
  const match = /^(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB)?$/.exec(said)
  const number = match ? Number(match[1]) : Number.NaN
  const factor = match?.[2] ? byteUnits[match[2] as keyof typeof byteUnits] : 1
  const value = bytes ? Math.round(number * factor) : number
  const whole = unit !== 'IOPS' || Number.isInteger(value)
  if (!(value > 0 && Number.isSafeInteger(Math.ceil(value))) || (!bytes && match?.[2]) || !whole)
    throw fault('limit.not_a_value', `invalid value for limit "${title}": "${text}"`, { hint: hints[unit] })
  return value
}

const hints: Record<LimitUnit, string> = {
  cores: 'A number of cores, e.g. 0.7; "none" takes the limit away.',
  bytes: 'A size with one of the units B, kB, MB, GB and TB, e.g. 4GB; "none" takes the limit away.',
  IOPS: 'A whole number of reads or writes per second, e.g. 800; "none" takes the limit away.',
  'bytes/s':
    'Bytes per second with one of the units B, kB, MB, GB and TB, e.g. 50MB; "none" takes the limit away.',
}
export const limitHint = (name: LimitName): string => hints[limitRecord(name).unit]

/** A limit as a person types it; parseLimit() reads it back. */
export function limitText(name: LimitName, value: number | null): string {
  if (value === null) return 'none'
  const { unit } = limitRecord(name)
  if (unit === 'cores' || unit === 'IOPS') return String(value)
  const [largest] = (['TB', 'GB', 'MB', 'kB'] as const).filter((u) => value % byteUnits[u] === 0)
  return largest ? `${value / byteUnits[largest]}${largest}` : `${value}B`
}

/** A limit with its unit, for people. */
export function formatLimit(name: LimitName, value: number | null): string {
  if (value === null) return 'none'
  const { unit } = limitRecord(name)
  switch (unit) {
    case 'cores':
      return `${value} ${value === 1 ? 'core' : 'cores'}`
    case 'IOPS':
      return `${value} IOPS`
    default:
      return `${limitText(name, value).replace(/([a-zA-Z]+)$/, ' $1')}${unit === 'bytes' ? '' : '/s'}`
  }
}

/** How an agent limits: by which interface of the kernel. */
export const LimitDriverKind = z.enum(['cgroup-v1', 'cgroup-v2', 'systemd'])
export type LimitDriverKind = z.infer<typeof LimitDriverKind>
export const limitDriverTitles: Record<LimitDriverKind, string> = {
  'cgroup-v1': 'cgroup v1',
  'cgroup-v2': 'cgroup v2',
  systemd: 'cgroup v2, with systemd',
}

/** A process that the kernel killed for want of memory. */
export const MemoryKill = z.object({
  /** By the kernel's log; where that reports nothing, when the agent saw that the kernel had counted one. */
  at: z.number(),
  /** Null where the kernel's log reports nothing of it. The PID is the kernel's own. */
  process: z.object({ pid: z.number().int(), name: z.string().max(64) }).nullable(),
  /** At its own limit, or because the machine, or what the machine gave to all of Floe, had nothing left; null: not known. */
  cause: z.enum(['limit', 'host']).nullable(),
})
export type MemoryKill = z.infer<typeof MemoryKill>

/**
 * Which process it was and why, and what PostgreSQL does then, as sentences: `"postgres" (PID 5032) was killed at the memory
 * limit of the instance. …`
 */
export function memoryKillWords({ process, cause }: MemoryKill): string {
  const which = process === null ? 'a process (not known which)' : `"${process.name}" (PID ${process.pid})`
  const why = {
    limit: 'at the memory limit of the instance',
    host: 'because the host had no memory left, not because of a limit of the instance',
    unknown: 'at its memory limit, or because the host had no memory left',
  }[cause ?? 'unknown']
  const then =
    process === null
      ? 'If it was one of the engine’s, PostgreSQL ended all sessions and recovered'
      : process.name === 'postgres'
        ? 'It was one of the engine’s: PostgreSQL ends all sessions then, and recovers'
        : 'It was none of the engine’s: PostgreSQL’s other sessions go on'
  return `${which} was killed ${why}. ${then}.`
}

/** A kill counts as lately for an hour. */
export const KILLED_LATELY_MS = 3_600_000

/** What an agent sees of an instance's limits. */
export const LimitsObserved = z.object({
  /** Null where nothing can be limited; `whyNot` says why. */
  driver: LimitDriverKind.nullable(),
  whyNot: Fault.nullable(),
  ordered: InstanceLimits,
  /** As read back from the kernel; null while the instance does not run. */
  inForce: InstanceLimits.nullable(),
  /** What of the ordered limits does not hold, or holds less than its name says, as sentences. */
  gaps: z.array(z.object({ limit: z.string(), why: z.string() })),
  /** Background processes that limits of I/O do not hold for, as found there. */
  exempt: z.array(z.string()),
  /** Names of the devices that data and WAL lie on; null where there is none to be limited. */
  devices: z.object({ data: z.string().nullable(), wal: z.string().nullable() }),
  /** Memory that the kernel cannot reclaim is close to the limit. */
  memoryNearLimit: z.boolean(),
  /** Processes of it that the kernel killed for want of memory since it was started; null where that is not known. */
  outOfMemoryKills: z.number().int().nullable(),
  /** The last of them, also of before the start. Since contract 1.24. */
  lastMemoryKill: MemoryKill.nullish(),
  /**
   * Pages that were written and wait until the kernel sends them to storage, where a limit of writes is set and does not
   * hold for that: rounded up to a power of two of MB. Null or absent where it does hold, or nothing is known.
   */
  unlimitedWriteBackBytes: z.number().int().nullish(),
})
export type LimitsObserved = z.infer<typeof LimitsObserved>

/** How much a limit of writes lets past it now, as a sentence; null where it holds for all, or that is not known. */
export const unlimitedWriteBackWords = ({ unlimitedWriteBackBytes: bytes }: LimitsObserved): string | null =>
  bytes === null || bytes === undefined
    ? null
    : bytes === 0
      ? 'Nothing waits to be written back past the limit now.'
      : `Up to ${formatLimit('memoryMax', bytes)} wait to be written back past the limit now.`

/** A sum of limits against the size of a host; more than there is is said, not refused. */
export const LimitSum = z.object({
  resource: z.enum(['cpu', 'memory']),
  limited: z.number(),
  size: z.number(),
  /** How many instances have no such limit: they may take all there is. */
  unlimited: z.number().int(),
  /** How many are counted with a high limit of memory alone: the kernel slows them down there, and they may exceed it. */
  highOnly: z.number().int().default(0),
  over: z.boolean(),
})
export type LimitSum = z.infer<typeof LimitSum>

/** A sum for people: `0.75 cores of 2 cores; 3 have none and may take all of it`. */
export function limitSumWords({ resource, limited, size, unlimited, highOnly }: LimitSum): string {
  const show = (value: number) =>
    resource === 'cpu' ? `${Math.round(value * 100) / 100} cores` : formatBytes(value)
  const without =
    unlimited === 0 ? '' : `; ${unlimited} ${unlimited === 1 ? 'has' : 'have'} none and may take all of it`
  const high =
    highOnly === 0
      ? ''
      : `; ${highOnly} ${highOnly === 1 ? 'is' : 'are'} counted with the high limit alone, which can be exceeded`
  return `${show(limited)} of ${show(size)}${high}${without}`
}

/** Whether a kernel that limits in one of these ways has a high limit of memory; one that nobody knows is taken to have it. */
export const hasMemoryHigh = (drivers: readonly (LimitDriverKind | null)[]): boolean =>
  !drivers.includes('cgroup-v1')

/** `memoryHigh`: whether the host's kernel has a high limit; where not, it limits nothing and is not counted. */
export function sumLimits(
  all: readonly InstanceLimits[],
  host: { cpus: number; memoryBytes: number; memoryHigh: boolean },
): LimitSum[] {
  const sum = (resource: LimitSum['resource'], size: number, of: (l: InstanceLimits) => number | null) => {
    const set = all.flatMap((limits) => of(limits) ?? [])
    const limited = set.reduce((a, b) => a + b, 0)
    // sums of tenths of cores
    const over = limited > size * (1 + 1e-9)
    return { resource, limited, size, unlimited: all.length - set.length, highOnly: 0, over }
  }
  const high = (l: InstanceLimits) => (host.memoryHigh && l.memoryMax === null ? l.memoryHigh : null)
  return [
    sum('cpu', host.cpus, (l) => l.cpu),
    {
      ...sum('memory', host.memoryBytes, (l) => l.memoryMax ?? high(l)),
      highOnly: all.filter((l) => high(l) !== null).length,
    },
  ]
}
