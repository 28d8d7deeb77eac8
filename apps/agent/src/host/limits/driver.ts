import type { InstanceLimits, LimitDriverKind } from '@floe/domain'
import type { DeviceUse } from '@floe/host/control-groups'
import type { Devices } from './device'

/**
 * Where a process belongs: what limits of I/O hold for, or the background processes that they do not. Processors and memory
 * are limited for both together.
 */
export type Part = 'sessions' | 'background'

/** What an instance has used since its groups were made. What the kernel does not count is null. */
export type GroupUse = {
  cpuSeconds: number | null
  /** How long it wanted a processor and was kept from it by its limit. */
  cpuThrottledSeconds: number | null
  memoryBytes: number | null
  /** Of that what the kernel cannot reclaim: private and shared memory, without files that it may read again. */
  memoryHeldBytes: number | null
  outOfMemoryKills: number | null
  /** Written pages of files that wait until the kernel sends them to storage, or are on their way. */
  writeBackBytes: number | null
  /** How long some process of a session waited for storage. */
  ioWaitSeconds: number | null
  /** How long one waited until the kernel had taken memory back for it: at a limit, or on a host without any left. */
  memoryWaitSeconds: number | null
  /** By the number of the device; what sessions did, which is what the limits count. */
  devices: ReadonlyMap<string, DeviceUse>
}

/**
 * Limits the processes of instances by one of the kernel's interfaces. A group lasts as long as a process is in it, whatever
 * becomes of the agent; its limits are the kernel's and outlive the agent, too.
 */
export interface LimitDriver {
  readonly kind: LimitDriverKind
  /** Makes an instance's groups before its postmaster is started. */
  prepare(instanceId: string): void
  /** Files that a process writes its own pid into to begin in the groups; none where somebody else puts it there. */
  entrances(instanceId: string): readonly string[]
  /** Takes over the groups that a running postmaster is in, or makes them. */
  adopt(instanceId: string, postmasterPid: number): void
  /** Puts a process where it belongs unless it is there; true where it is there now. */
  place(instanceId: string, pid: number, part: Part): boolean
  /** Puts a process that turned out to be somebody else's where its parent is. */
  giveBack(pid: number, parent: number): void
  /** Sets limits, also those of a running instance; throws as the kernel refuses. */
  apply(instanceId: string, limits: InstanceLimits, devices: Devices): Promise<void>
  /** As read back from the kernel; null where there are no groups. */
  inForce(instanceId: string, devices: Devices): InstanceLimits | null
  use(instanceId: string): GroupUse | null
  /** Whether limits of writes hold for what the kernel itself writes back. */
  readonly limitsWriteBack: boolean
  /** Why a limit that is set does not hold, or less than its name says. */
  gaps(limits: InstanceLimits): { limit: keyof InstanceLimits; why: string }[]
  /** Removes the groups of an instance that has ended; false while a process is in one. */
  forget(instanceId: string): boolean
}

/** The limits of each device: WAL limits only where WAL lies on a device of its own; those of data where tablespaces lie, too. */
export function limitsByDevice(limits: InstanceLimits, devices: Devices): Map<string, IoLimits> {
  const { data, wal, tablespaces = [] } = devices
  const all = new Map<string, IoLimits>()
  if (data) all.set(data.number, ofData(limits))
  if (wal && wal.number !== data?.number) all.set(wal.number, ofWal(limits))
  for (const { number } of tablespaces) if (!all.has(number)) all.set(number, ofData(limits))
  return all
}

/** Sets one after the other; what one of them refuses leaves no other unset, and is thrown at the end. */
export function setEach<T>(all: Iterable<T>, set: (one: T) => void): void {
  const refused: unknown[] = []
  for (const one of all)
    try {
      set(one)
    } catch (error) {
      refused.push(error)
    }
  if (refused.length > 0) throw refused[0]
}

export type IoLimits = Record<'readIops' | 'writeIops' | 'readBytes' | 'writeBytes', number | null>

const ofData = (l: InstanceLimits): IoLimits => ({
  readIops: l.dataReadIops,
  writeIops: l.dataWriteIops,
  readBytes: l.dataReadBytes,
  writeBytes: l.dataWriteBytes,
})
const ofWal = (l: InstanceLimits): IoLimits => ({
  readIops: l.walReadIops,
  writeIops: l.walWriteIops,
  readBytes: l.walReadBytes,
  writeBytes: l.walWriteBytes,
})

/** The same the other way round, from what each device is limited to. */
export function limitsOfDevices(
  { data, wal, tablespaces = [] }: Devices,
  of: (device: string) => IoLimits,
): Omit<InstanceLimits, 'cpu' | 'memoryHigh' | 'memoryMax'> {
  const none: IoLimits = { readIops: null, writeIops: null, readBytes: null, writeBytes: null }
  const d = inAll([...(data ? [data] : []), ...tablespaces].map(({ number }) => of(number))) ?? none
  const w = wal && wal.number !== data?.number ? of(wal.number) : none
  return {
    dataReadIops: d.readIops,
    dataWriteIops: d.writeIops,
    dataReadBytes: d.readBytes,
    dataWriteBytes: d.writeBytes,
    walReadIops: w.readIops,
    walWriteIops: w.writeIops,
    walReadBytes: w.readBytes,
    walWriteBytes: w.writeBytes,
  }
}

/** What holds on all of several devices: a limit that one of them does not have is none. */
function inAll([first, ...others]: readonly IoLimits[]): IoLimits | null {
  if (!first) return null
  const common = (name: keyof IoLimits) => (others.every((o) => o[name] === first[name]) ? first[name] : null)
  return {
    readIops: common('readIops'),
    writeIops: common('writeIops'),
    readBytes: common('readBytes'),
    writeBytes: common('writeBytes'),
  }
}

/** The kernel counts processor time over this long; what is left of it waits for the next. */
export const CPU_PERIOD_US = 100_000

/** Cores as a quota of a period, and back to hundredths. */
export const quotaOf = (cores: number): number => Math.max(1_000, Math.round(cores * CPU_PERIOD_US))
export const coresOf = (quota: number, period: number): number => Math.round((quota / period) * 1_000) / 1_000
