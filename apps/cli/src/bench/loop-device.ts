import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fault } from '@floe/domain'
import { runProgram } from '../run-program'

export const loopFileSystems = ['xfs', 'ext4'] as const
export type LoopFileSystem = (typeof loopFileSystems)[number]

/** A file system of its own on a file behind a loop device. */
export type LoopDevice = {
  /** Where it is mounted; every user may pass. */
  directory: string
  /** As the kernel's groups name it: `7:0`. */
  number: string
  /** A fsynced write is two requests, the write and a flush, where the device has a cache that has to be flushed. */
  requestsOfFsyncedWrite: 1 | 2
  /** Unmounts it, detaches the device and removes the file; throws what is left over. */
  remove(): Promise<void>
}

const UNMOUNT_MS = 30_000

async function run(file: string, ...args: string[]): Promise<string> {
  const { status, stdout, tail } = await runProgram(file, args)
  if (status !== 0)
    throw fault('bench.no_device', `"${[file, ...args].join(' ')}" failed`, { detail: tail.join('\n') })
  return stdout.trim()
}

/** Says what is missing before anything is made. */
export async function requireLoopDevices(uid = process.getuid?.()): Promise<void> {
  if (uid !== 0)
    throw fault('bench.no_root', 'this benchmark needs root', {
      detail:
        'It attaches a loop device, makes file systems on it and mounts them, and limits I/O by cgroups.',
      hint: 'Run it as root on a machine where that is allowed.',
    })
  for (const [program, part] of [
    ['losetup', 'mount'],
    ['mkfs.xfs', 'xfsprogs'],
    ['mkfs.ext4', 'e2fsprogs'],
  ] as const)
    if ((await runProgram(program, ['-V'])).status === 127)
      throw fault('bench.no_program', `program "${program}" is missing`, {
        hint: `Install package "${part}".`,
      })
}

export async function makeLoopDevice(
  fileSystem: LoopFileSystem,
  size: string,
  parent = tmpdir(),
): Promise<LoopDevice> {
  const room = mkdtempSync(join(parent, 'floe-neighbours-'))
  const [image, directory] = [join(room, 'image'), join(room, 'mount')]
  let device: string | undefined
  let mounted = false
  const remove = async () => {
    if (mounted) await unmount(directory)
    mounted = false
    if (device !== undefined) await run('losetup', '--detach', device)
    device = undefined
    rmSync(room, { recursive: true, force: true })
  }
  try {
    chmodSync(room, 0o755)
    mkdirSync(directory)
    await run('truncate', '-s', size, image)
    // without a cache of its own below the file system's: what is written there is on the device
    device = await run('losetup', '--direct-io=on', '--find', '--show', image)
    if (fileSystem === 'xfs') await run('mkfs.xfs', '-q', device)
    else await run('mkfs.ext4', '-q', '-E', 'lazy_itable_init=0,lazy_journal_init=0', device)
    await run('mount', '-o', 'noatime', device, directory)
    mounted = true
    chmodSync(directory, 0o755)
    const cache = readFileSync(join('/sys/block', basename(device), 'queue/write_cache'), 'utf8').trim()
    const number = readFileSync(join('/sys/block', basename(device), 'dev'), 'utf8').trim()
    return { directory, number, requestsOfFsyncedWrite: cache === 'write back' ? 2 : 1, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

/** A process that has just ended may hold a file for a moment. */
async function unmount(directory: string): Promise<void> {
  const end = performance.now() + UNMOUNT_MS
  for (;;) {
    const { status, tail } = await runProgram('umount', [directory])
    if (status === 0 || !existsSync(directory)) return
    if (performance.now() > end)
      throw fault('bench.still_mounted', `could not unmount "${directory}"`, {
        detail: tail.join('\n'),
        hint: 'End what uses it, then unmount it, detach its loop device ("losetup -a") and remove its directory.',
      })
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}
