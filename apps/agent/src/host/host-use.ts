import { secondsWaited } from '@floe/host/control-groups'
import { readLongKernelFile } from '@floe/host/kernel-file'

/** Counters between which less time lies say little. */
const LEAST_MS = 900
/** What was counted over longer than this is not what is now. */
const MOST_MS = 60_000
/** Sectors of /proc/diskstats are of this size, whatever the disk's are. */
const SECTOR = 512

/** Bytes, and milliseconds in which there was something to do, and of all requests together. */
type DiskCounters = { read: number; written: number; busyMs: number; queueMs: number }

type Counters = {
  /** Monotonic, ms. */
  at: number
  cpus: number
  busy: number
  total: number
  /** How long some process waited for storage; null where the kernel does not count it. */
  ioWaitSeconds: number | null
  /** By the number of the device. */
  disks: ReadonlyMap<string, DiskCounters>
}

/** What a disk does, per second. */
export type DiskUse = {
  readBytes: number
  writeBytes: number
  /** Share of the time in which it had something to do. */
  busy: number
  /** Requests at once, on average. */
  queue: number
}

/** What the whole machine uses, by whomever. */
export type HostUse = {
  /** Cores. */
  cpuBusy: number
  /** Share of the time in which some process waited for storage. */
  ioWait: number | null
  /** By the number of the device. */
  disks: ReadonlyMap<string, DiskUse>
}

/** /proc/stat, /proc/diskstats and /proc/pressure/io (which not every kernel has); null where the kernel writes them otherwise. */
export function parseCounters(
  stat: string,
  diskstats: string,
  pressure: string | null,
  at: number,
): Counters | null {
  const all = /^cpu +(.*)$/m.exec(stat)?.[1]?.split(' ').map(Number) ?? []
  // user nice system idle iowait irq softirq steal; what guests use is in user already
  const times = all.slice(0, 8)
  const cpus = stat.match(/^cpu\d+ /gm)?.length ?? 0
  if (times.length < 5 || times.some((t) => !Number.isFinite(t)) || cpus === 0) return null
  const total = times.reduce((a, b) => a + b, 0)
  const idle = (times[3] as number) + (times[4] as number)
  const disks = new Map<string, DiskCounters>()
  for (const line of diskstats.split('\n')) {
    const [major, minor, , , , read, , , , written, , , busyMs, queueMs] = line.trim().split(/ +/)
    if (queueMs === undefined) continue
    disks.set(`${major}:${minor}`, {
      read: Number(read) * SECTOR,
      written: Number(written) * SECTOR,
      busyMs: Number(busyMs),
      queueMs: Number(queueMs),
    })
  }
  return { at, cpus, busy: total - idle, total, ioWaitSeconds: secondsWaited(pressure), disks }
}

/** Counters that went back are of another machine, or began again: nothing is known then. */
export function usedBetween(before: Counters, after: Counters): HostUse | null {
  const ms = after.at - before.at
  const total = after.total - before.total
  const busy = after.busy - before.busy
  if (ms > MOST_MS || total <= 0 || busy < 0 || after.cpus !== before.cpus) return null
  const disks = new Map<string, DiskUse>()
  for (const [number, now] of after.disks) {
    const then = before.disks.get(number)
    if (!then || now.read < then.read || now.written < then.written) continue
    const perSecond = (bytes: number) => bytes / (ms / 1_000)
    disks.set(number, {
      readBytes: perSecond(now.read - then.read),
      writeBytes: perSecond(now.written - then.written),
      // the kernel counts in ticks, which may come to a little more than the time
      busy: Math.min(1, Math.max(0, now.busyMs - then.busyMs) / ms),
      queue: Math.max(0, now.queueMs - then.queueMs) / ms,
    })
  }
  const [waited, earlier] = [after.ioWaitSeconds, before.ioWaitSeconds]
  const ioWait =
    waited === null || earlier === null || waited < earlier ? null : ((waited - earlier) * 1_000) / ms
  return { cpuBusy: (busy / total) * after.cpus, ioWait: ioWait === null ? null : Math.min(1, ioWait), disks }
}

/** Measures from one look to the next; looks that follow each other at once have the same answer. */
export class HostUseMeter {
  #before: Counters | null = null
  #use: HostUse | null = null

  look(now = performance.now()): HostUse | null {
    if (this.#before && now - this.#before.at < LEAST_MS) return this.#use
    const counters = readCounters(now)
    this.#use = this.#before && counters && usedBetween(this.#before, counters)
    this.#before = counters
    return this.#use
  }
}

function readCounters(now: number): Counters | null {
  try {
    return parseCounters(
      readLongKernelFile('/proc/stat'),
      readLongKernelFile('/proc/diskstats'),
      readPressure(),
      now,
    )
  } catch {
    return null
  }
}

/** Null where the kernel counts none, or was started without. */
function readPressure(): string | null {
  try {
    return readLongKernelFile('/proc/pressure/io')
  } catch {
    return null
  }
}
