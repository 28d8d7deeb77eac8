import { lstatSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { mountAbove, unescapeMount } from '../mount-tables'

/** A block device as the kernel's limits name it, `254:0`, and as people do. */
export type Device = { number: string; name: string }

type MountedDevice = { mount: string; number: string }

/**
 * The devices that an instance's data and WAL lie on. Null: nothing that can be limited, e.g. a tmpfs or an overlay. Where
 * pg_wal is a link its target is compared with the mounted file systems and not followed: the instance's user wrote it.
 */
export function devicesOf(dataDirectory: string): { data: Device | null; wal: Device | null } {
  const data = wholeDevice(numberOf(statSync(dataDirectory, { bigint: true }).dev))
  const target = linkTarget(join(dataDirectory, 'pg_wal'))
  if (target === null) return { data, wal: data }
  const path = isAbsolute(target) ? join(target) : join(dataDirectory, target)
  const mounted = mountAbove(path, parseMountedDevices(readFileSync('/proc/self/mountinfo', 'utf8')))
  return { data, wal: mounted && wholeDevice(mounted.number) }
}

/** Null where there is no link, or none any more: what its owner does to it must not cost the limits of the data. */
function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path)
  } catch {
    return null
  }
}

/** `major:minor` of a device number as stat tells it (glibc's gnu_dev_major and gnu_dev_minor). */
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
