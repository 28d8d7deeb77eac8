import { readFileSync, realpathSync, statfsSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { Disk } from '@floe/domain'
import type { HostUse } from './host-use'
import { numberOf, wholeDevice } from './limits/device'
import { mountAbove, unescapeMount } from './mount-tables'

type Mount = { mount: string; device: string; fileSystem: string; options: string }

/** Mounts as /proc/self/mounts lists them; octal escapes of blanks are undone. */
export function parseMounts(text: string): Mount[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [device, mount, fileSystem, options] = line.split(' ').map(unescapeMount)
      return {
        mount: mount ?? '',
        device: device ?? '',
        fileSystem: fileSystem ?? '',
        options: options ?? '',
      }
    })
}

/** What is mounted where, as the agent sees it. */
export const readMounts = (): Mount[] => parseMounts(readFileSync('/proc/self/mounts', 'utf8'))

/** The file systems that hold these paths, each once; that of the first holds the instances. */
export function readDisks(paths: readonly string[], use: HostUse | null = null): Disk[] {
  const mounts = readMounts()
  const disks = new Map<string, Disk>()
  for (const [i, path] of paths.entries()) {
    const mount = mountOf(path, mounts)
    if (!mount || disks.has(mount.mount)) continue
    try {
      const fs = statfsSync(mount.mount)
      const sizes = { sizeBytes: fs.blocks * fs.bsize, freeBytes: fs.bavail * fs.bsize }
      const device = wholeDevice(numberOf(statSync(mount.mount, { bigint: true }).dev))
      const used = device && use?.disks.get(device.number)
      disks.set(mount.mount, {
        ...mount,
        ...sizes,
        nvme: isNvme(mount.device),
        disk: device?.name ?? null,
        readBytes: used?.readBytes ?? null,
        writeBytes: used?.writeBytes ?? null,
        busy: used?.busy ?? null,
        queue: used?.queue ?? null,
        holdsInstances: i === 0,
      })
    } catch {
      // a mount that cannot be asked is left out rather than shown with zeros
    }
  }
  return [...disks.values()]
}

function mountOf(path: string, mounts: readonly Mount[]): Mount | null {
  try {
    return mountAbove(realpathSync(path), mounts)
  } catch {
    return null
  }
}

function isNvme(device: string): boolean {
  try {
    return basename(realpathSync(device)).startsWith('nvme')
  } catch {
    return false
  }
}
