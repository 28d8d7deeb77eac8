import { readKernelFile } from '@floe/host/kernel-file'
import { readChild } from '@floe/host/process'

/** How long it sleeps in one place of the kernel before that is said to hang. */
const HUNG_MS = 2_000

/** What the kernel reported of a process at one moment. */
export type SleepSeen = {
  /** Monotonic, ms. */
  at: number
  pid: number
  startTicks: number
  state: string
  /** How often it was given a processor so far; null where that is not known. */
  switches: number | null
  /** The function of the kernel that it waits in; null where that is not reported. */
  place: string | null
}

/**
 * Distinguishes a process that hangs in the kernel from one that waits for slow storage, as the kernel's own detector of hung tasks
 * does: it sleeps without being interruptible and has not been woken up once. Who waits for slow storage is, with each page.
 */
export class HungSleep {
  #since: SleepSeen | null = null

  /** The next look; answers where it hangs (empty: not reported), or null where it does not. */
  see(now: SleepSeen | null): string | null {
    const since = this.#since
    const asleep = now?.state === 'D' && now.switches !== null ? now : null
    const same =
      since &&
      asleep?.pid === since.pid &&
      asleep.startTicks === since.startTicks &&
      asleep.switches === since.switches
    if (!same) this.#since = asleep
    return same && asleep && asleep.at - since.at >= HUNG_MS ? (asleep.place ?? '') : null
  }
}

/** The process of a pid, if it is that parent's child. Files that cost something are read only while it sleeps. */
export function lookAtSleep(pid: unknown, parent: number | undefined, at: number): SleepSeen | null {
  const stat = readChild(pid, parent)
  if (stat === null) return null
  const { startTicks, state } = stat
  const asleep = state === 'D'
  return {
    ...{ at, pid: stat.pid, startTicks, state },
    switches: asleep ? switchesIn(read(stat.pid, 'status')) : null,
    place: asleep ? placeIn(read(stat.pid, 'wchan')) : null,
  }
}

/** The sum of both kinds that /proc/PID/status counts. */
export function switchesIn(status: string | null): number | null {
  const of = (kind: string) => new RegExp(`^${kind}_ctxt_switches:\\s+(\\d+)`, 'm').exec(status ?? '')?.[1]
  const [own, forced] = [of('voluntary'), of('nonvoluntary')]
  return own === undefined || forced === undefined ? null : Number(own) + Number(forced)
}

/** /proc/PID/wchan; 0 is said by a kernel that does not report it, and of a process that runs. */
export const placeIn = (wchan: string | null): string | null =>
  wchan === null || wchan === '0' || wchan === '' ? null : wchan.trim().slice(0, 64)

function read(pid: number, file: string): string | null {
  try {
    return readKernelFile(`/proc/${pid}/${file}`)
  } catch {
    return null
  }
}
