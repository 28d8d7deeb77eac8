import { formatBytes, formatDuration } from './format'
import type { HostFacts } from './host'
import { formatLimit, type InstanceLimits, type LimitName, limitNames } from './instance-limits'

export const hostResources = ['cpu', 'memory', 'space', 'reads', 'writes'] as const
export type HostResource = (typeof hostResources)[number]

type ResourceRecord = {
  title: string
  unit: 'cores' | 'B' | 'B/s'
  /** What is said of the machine as a whole. */
  source: string
  /** What can limit it. */
  limits: readonly LimitName[]
}
export const hostResourceRecords = {
  cpu: { title: 'CPU', unit: 'cores', source: '/proc/stat', limits: ['cpu'] },
  memory: {
    title: 'Memory',
    unit: 'B',
    source: '/proc/meminfo: MemTotal less MemAvailable',
    limits: ['memoryMax', 'memoryHigh'],
  },
  space: { title: 'Disk space', unit: 'B', source: 'statfs of the instances’ file system', limits: [] },
  reads: {
    title: 'Reads',
    unit: 'B/s',
    source: '/proc/diskstats',
    limits: ['dataReadBytes', 'dataReadIops'],
  },
  writes: {
    title: 'Writes',
    unit: 'B/s',
    source: '/proc/diskstats',
    limits: ['dataWriteBytes', 'dataWriteIops'],
  },
} as const satisfies Record<HostResource, ResourceRecord>
export const hostResourceRecord = (resource: HostResource): ResourceRecord => hostResourceRecords[resource]

/** What an instance may have of a resource: `limit 4 GB, high 3 GB`; null where nothing limits it. */
export function limitWords(resource: HostResource, limits: InstanceLimits): string | null {
  const set = hostResourceRecord(resource).limits.filter((name) => limits[name] !== null)
  const words = set.map((name) => `${name === 'memoryHigh' ? 'high ' : ''}${formatLimit(name, limits[name])}`)
  return words.length === 0 ? null : `limit ${words.join(', ')}`
}

/** What an instance uses of each resource now; null: not known. */
export type InstanceUse = Record<HostResource, number | null>
export const unknownUse: InstanceUse = { cpu: null, memory: null, space: null, reads: null, writes: null }

/** A resource of a host, in parts that add up: what instances use, what everything else does, what is left. */
export type ResourceMap = {
  resource: HostResource
  /** The mount or disk that is meant; null: the machine. */
  of: string | null
  /** All there is; null where the host does not report it, or nobody knows, as of what a disk can do in a second. */
  size: number | null
  /** Of each instance, in their order. */
  used: (number | null)[]
  /** What the host counts beside them; null: not known. */
  others: number | null
  left: number | null
  /** Instances whose use is not known: it is among `others`. */
  unknown: number
}

/** The file system that holds the instances; an older agent does not say which of its disks that is. */
export const diskOfInstances = ({ disks }: Pick<HostFacts, 'disks'>): HostFacts['disks'][number] | null =>
  disks.find((disk) => disk.holdsInstances) ?? disks[0] ?? null

/**
 * Who uses how much of a host. Host and instances are counted by different counters at different moments; where the instances
 * together come to more than the host, nothing is left over for everything else.
 */
export function hostMap(facts: HostFacts, uses: readonly InstanceUse[]): ResourceMap[] {
  const disk = diskOfInstances(facts)
  const map = (
    resource: HostResource,
    of: string | null,
    size: number | null,
    inUse: number | null,
  ): ResourceMap => {
    const used = uses.map((use) => use[resource])
    const sum = used.reduce<number>((total, value) => total + (value ?? 0), 0)
    return {
      resource,
      of,
      size,
      used,
      others: inUse === null ? null : Math.max(0, inUse - sum),
      left: inUse === null || size === null ? null : Math.max(0, size - Math.max(inUse, sum)),
      unknown: used.filter((value) => value === null).length,
    }
  }
  const device = disk?.disk ?? disk?.device ?? null
  return [
    map('cpu', null, facts.cpus, facts.cpuBusy ?? null),
    map('memory', null, facts.memoryBytes, facts.memoryBytes - facts.memoryAvailableBytes),
    map('space', disk?.mount ?? null, disk?.sizeBytes ?? null, disk ? disk.sizeBytes - disk.freeBytes : null),
    map('reads', device, null, disk?.readBytes ?? null),
    map('writes', device, null, disk?.writeBytes ?? null),
  ]
}

/** What a bar of a resource is as long as. */
export const scaleOf = ({ size, used, others }: ResourceMap): number =>
  Math.max(size ?? 0, used.reduce<number>((total, value) => total + (value ?? 0), 0) + (others ?? 0))

/** A value of a resource with its unit, for people; null is a dash. */
export function formatUse(resource: HostResource, value: number | null): string {
  if (value === null) return '–'
  const { unit } = hostResourceRecord(resource)
  if (unit === 'cores') return `${value.toFixed(2)} ${value === 1 ? 'core' : 'cores'}`
  return `${formatBytes(Math.round(value))}${unit === 'B/s' ? '/s' : ''}`
}

/** A stall of an instance in the last minutes, and which instance read and wrote most meanwhile. */
export type StallSeen = {
  name: string
  startedAt: number
  endedAt: number
  /** What it waited for, in words. */
  reason: string
  /** The cause is one that a neighbour can bring about. */
  shared: boolean
  most: { name: string; share: number } | null
}

/** A whole disk of a host, as its agent saw it lately. */
export type DiskSeen = { name: string; busy: number; queue: number; holdsInstances: boolean }

/** The disks of a host of which is known how busy they are, each once. */
export const disksSeen = ({ disks }: Pick<HostFacts, 'disks'>): DiskSeen[] => {
  const all = new Map<string, DiskSeen>()
  const held = diskOfInstances({ disks })?.disk
  for (const { disk: name, busy, queue } of disks)
    if (name && typeof busy === 'number' && typeof queue === 'number')
      all.set(name, { name, busy, queue, holdsInstances: name === held })
  return [...all.values()]
}

const percent = (share: number) => `${Math.round(share * 100)} %`
const busyWords = ({ busy, queue }: DiskSeen) =>
  `busy ${percent(busy)} of the last seconds, with ${queue.toFixed(1)} requests at once on average`
const ioWaitWords = (share: number) =>
  `Some process of the host waited for storage ${percent(share)} of the time.`

/** How busy disks are, and whether somebody waits, as sentences; none of what is not known. */
export const diskUseWords = (disks: readonly DiskSeen[], ioWait: number | null): string[] => [
  ...disks.map((disk) => `Disk ${disk.name} was ${busyWords(disk)}.`),
  ...(ioWait === null ? [] : [ioWaitWords(ioWait)]),
]

/** Something that hurts, whom, and what can be done about it. */
export type HostPressure = { title: string; detail: string; hint: string | null }

/** Less than this share of a resource that is left is none. */
const LEFT = 0.05
const SPACE_LEFT = 0.1
/** Processor time that a limit holds back, in cores, from which on it is said. */
const HELD_BACK = 0.05
/** A neighbour that did so much of the reading and writing is named. */
const MOST = 0.5
/** A disk that has something to do for this share of the time is saturated, if others wait for it. */
const BUSY = 0.9
/** Some process waits for storage for this share of the time: it is held up. */
const WAITS = 0.5
/** Where the kernel does not count waits, as many requests at once say that some wait for others. */
const QUEUED = 2

/** What hurts whom on a host, by what was seen; the worst first. */
export function hostPressures(o: {
  map: readonly ResourceMap[]
  /** `ioWait`: share of the time in which some session of it waited for storage; null: not known. */
  instances: readonly {
    name: string
    heldBack: number | null
    ioWait: number | null
    limits: InstanceLimits
  }[]
  disks: readonly DiskSeen[]
  /** Share of the time in which some process of the host waited for storage; null: not known. */
  ioWait: number | null
  stalls: readonly StallSeen[]
}): HostPressure[] {
  return [
    ...o.map.flatMap((m) => usedUp(m, o.instances)),
    ...o.disks.flatMap((disk) => saturated(disk, o)),
    ...stallsByInstance(o.stalls),
    ...o.instances.flatMap(({ name, heldBack, limits }) =>
      heldBack === null || heldBack < HELD_BACK
        ? []
        : {
            title: `${name} is held back by its own limit`,
            detail: `It could use ${heldBack.toFixed(2)} cores more than its limit of ${limits.cpu ?? '–'} lets it.`,
            hint: `Raise it with "./floe instance limit ${name} --cpu CORES", if the others can spare that.`,
          },
    ),
  ]
}

function usedUp(
  m: ResourceMap,
  instances: readonly { name: string; limits: InstanceLimits }[],
): HostPressure[] {
  const { resource, size, left } = m
  if (size === null || left === null || left >= size * (resource === 'space' ? SPACE_LEFT : LEFT)) return []
  const { title } = hostResourceRecord(resource)
  const most = m.used.reduce<number | null>(
    (best, value, i) => ((value ?? 0) > (best === null ? 0 : (m.used[best] ?? 0)) ? i : best),
    null,
  )
  const used = most === null ? 0 : (m.used[most] ?? 0)
  const option = resource === 'cpu' ? '--cpu CORES' : resource === 'memory' ? '--memory-max SIZE' : null
  const byInstance = most !== null && used >= (m.others ?? 0)
  const name = most === null ? '' : (instances[most]?.name ?? '')
  return [
    {
      title: `${title} is used up`,
      detail: `${formatUse(resource, left)} of ${formatUse(resource, size)} are left. ${
        byInstance
          ? `Most of it is ${name}’s: ${formatUse(resource, used)}.`
          : `Most of it is used by what is no instance of Floe, or not known: ${formatUse(resource, m.others)}.`
      }`,
      hint:
        byInstance && option
          ? `Leave something to the others with "./floe instance limit ${name} ${option}".`
          : null,
    },
  ]
}

/** A disk that is busy all the time while somebody waits for it, with who reads and writes most and who waits. */
function saturated(
  disk: DiskSeen,
  { map, instances, ioWait }: Pick<Parameters<typeof hostPressures>[0], 'map' | 'instances' | 'ioWait'>,
): HostPressure[] {
  const { name, holdsInstances } = disk
  if (disk.busy < BUSY || (ioWait === null ? disk.queue < QUEUED : ioWait < WAITS)) return []
  const flows = map.filter((m) => m.resource === 'reads' || m.resource === 'writes')
  const bytesOf = instances.map((_, i) => flows.reduce((sum, m) => sum + (m.used[i] ?? 0), 0))
  const others = flows.reduce((sum, m) => sum + (m.others ?? 0), 0)
  const all = bytesOf.reduce((a, b) => a + b, 0) + others
  const largest = Math.max(0, ...bytesOf)
  // what instances read and write is known of all their disks together
  const known = holdsInstances && all > 0
  const neighbour = known && largest / all >= MOST ? instances[bytesOf.indexOf(largest)] : undefined
  const held = instances.filter((i) => i !== neighbour && i.ioWait !== null && i.ioWait >= WAITS)
  // the kernel counts both in one
  const limited = held.some(({ limits }) =>
    limitNames.some((l) => l.startsWith('data') && limits[l] !== null),
  )
  const waits = held.map((i) => `${i.name} ${percent(i.ioWait ?? 0)}`).join(', ')
  const sentences = [
    `It was ${busyWords(disk)}.`,
    ...(ioWait === null ? [] : [ioWaitWords(ioWait)]),
    ...(held.length === 0
      ? []
      : [
          `Sessions${neighbour ? ' of other instances' : ''} waited${limited ? ' for it or at limits of their own' : ''}: ${waits} of the time.`,
        ]),
  ]
  if (neighbour)
    sentences.push(`${neighbour.name} did ${percent(largest / all)} of the reads and writes, in bytes.`)
  else if (known && others / all >= MOST)
    sentences.push('Most is read and written by what is no instance of Floe, or not known.')
  return [
    {
      title: `Disk ${name} is saturated${neighbour ? `, mostly by ${neighbour.name}` : ''}`,
      detail: sentences.join(' '),
      hint: neighbour
        ? `Limit ${neighbour.name} with "./floe instance limit ${neighbour.name} --data-write-iops N --data-read-iops N".`
        : null,
    },
  ]
}

function stallsByInstance(stalls: readonly StallSeen[]): HostPressure[] {
  const lengthOf = (s: StallSeen) => s.endedAt - s.startedAt
  const names = [...new Set(stalls.map((s) => s.name))]
  return names
    .map((name) => {
      const own = stalls.filter((s) => s.name === name)
      const longest = own.reduce((a, b) => (lengthOf(b) > lengthOf(a) ? b : a))
      const { most, shared } = longest
      const neighbour = shared && most && most.name !== name && most.share >= MOST ? most : null
      return {
        total: own.reduce((sum, s) => sum + lengthOf(s), 0),
        title: neighbour ? `${name} stalled while ${neighbour.name} read and wrote most` : `${name} stalled`,
        detail: `${own.length === 1 ? 'Once' : `${own.length} times`} in the last 10 minutes, ${
          own.length === 1 ? 'for' : 'for at most'
        } ${formatDuration(lengthOf(longest))}; it waited for ${longest.reason}.${
          neighbour
            ? ` Meanwhile ${neighbour.name} did ${Math.round(neighbour.share * 100)} % of what the instances of this host read and wrote.`
            : ''
        }`,
        hint: neighbour
          ? `Limit ${neighbour.name} with "./floe instance limit ${neighbour.name} --data-write-iops N".`
          : null,
      }
    })
    .sort((a, b) => b.total - a.total)
    .map(({ title, detail, hint }) => ({ title, detail, hint }))
}
