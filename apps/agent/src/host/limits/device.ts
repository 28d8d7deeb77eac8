import { lstatSync, opendirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { mountAbove, unescapeMount } from '../mount-tables'

/** A block device as the kernel's limits name it, `254:0`, and as people do. */
export type Device = { number: string; name: string }

type MountedDevice = { mount: string; number: string }

/** The devices that the parts of an instance lie on. Null: nothing that can be limited, e.g. a tmpfs or an overlay. */
export type Devices = {
  data: Device | null
  wal: Device | null
  /** Others, each once. */
  tablespaces?: readonly Device[]
}

/** So many links to tablespaces are looked at: their directory is the instance's user's to fill. */
const MOST_TABLESPACES = 64

/**
 * Where pg_wal is a link its target is compared with the mounted file systems and not followed: the instance's user wrote it.
 * So are the links to tablespaces.
 */
export function devicesOf(
  dataDirectory: string,
  mountinfo = () => readFileSync('/proc/self/mountinfo', 'utf8'),
  sys?: string,
): Required<Devices> {
  const data = wholeDevice(numberOf(statSync(dataDirectory, { bigint: true }).dev), sys)
  const wal = linkTarget(join(dataDirectory, 'pg_wal'))
  const spaces = join(dataDirectory, 'pg_tblspc')
  const linked = linkedFrom(spaces)
  if (wal === null && linked.length === 0) return { data, wal: data, tablespaces: [] }
  const mounts = parseMountedDevices(mountinfo())
  const below = (from: string, target: string): Device | null => {
    const mounted = mountAbove(isAbsolute(target) ? join(target) : join(from, target), mounts)
    return mounted && wholeDevice(mounted.number, sys)
  }
  const walDevice = wal === null ? data : below(dataDirectory, wal)
  const others = new Map<string, Device>()
  for (const target of linked) {
    const device = below(spaces, target)
    if (device && device.number !== data?.number && device.number !== walDevice?.number)
      others.set(device.number, device)
  }
  return { data, wal: walDevice, tablespaces: [...others.values()] }
}

/** Targets of the links of a directory that are named by numbers; none where it is no directory. */
function linkedFrom(directory: string): string[] {
  try {
    if (!lstatSync(directory).isDirectory()) return []
    const opened = opendirSync(directory)
    try {
      const targets: string[] = []
      for (let i = 0; i < MOST_TABLESPACES; i++) {
        const entry = opened.readSync()
        if (entry === null) break
        const target = /^\d+$/.test(entry.name) ? linkTarget(join(directory, entry.name)) : null
        if (target !== null) targets.push(target)
      }
      return targets
    } finally {
      opened.closeSync()
    }
  } catch {
    return []
  }
}

/** Null where there is no link, or none any more: what its owner does to it must not cost the limits of the data. */
function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path)
  } catch {
    return null
  }
}

/** `major:minor` of a device number as stat reports it (glibc's gnu_dev_major and gnu_dev_minor). */
export function numberOf(dev: bigint): string {
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & 0xfffff000n)
  const minor = (dev & 0xffn) | ((dev >> 12n) & 0xffffff00n)
  return `${major}:${minor}`
}

/** Limits hold for a whole disk, whichever of its partitions a file system lies on. */
export function wholeDevice(number: string, sys = '/sys'): Device | null {
  try {
    const link = readlinkSync(`${sys}/dev/block/${number}`)
    const own = join(`${sys}/dev/block`, link)
    if (!isPartition(own)) return { number, name: basename(own) }
    const disk = dirname(own)
    return { number: readFileSync(join(disk, 'dev'), 'utf8').trim(), name: basename(disk) }
  } catch {
    return null
  }
}

const isPartition = (directory: string): boolean =>
  lstatSync(join(directory, 'partition'), { throwIfNoEntry: false }) !== undefined

/** Mount points of /proc/self/mountinfo with the device behind each. */
export function parseMountedDevices(text: string): MountedDevice[] {
  return text.split('\n').flatMap((line) => {
    const [, , number, , path] = line.split(' ')
    return number && path ? { number, mount: unescapeMount(path) } : []
  })
}

/** Milliseconds in which a device had something to do, since it is there; null where that is not reported. */
export function deviceBusyMs(number: string, sys = '/sys'): number | null {
  try {
    return busyMsIn(readFileSync(`${sys}/dev/block/${number}/stat`, 'latin1'))
  } catch {
    return null
  }
}

/** The tenth number of a device's `stat`. */
export function busyMsIn(stat: string): number | null {
  const busy = Number(stat.trim().split(/ +/)[9] ?? Number.NaN)
  return Number.isFinite(busy) ? busy : null
}
