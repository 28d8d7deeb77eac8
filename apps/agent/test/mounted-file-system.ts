import { spawnSync } from 'node:child_process'
import { chmodSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeScratchDirectory } from '@floe/testkit'

const run = (command: string, ...args: string[]) => spawnSync(command, args, { encoding: 'utf8' })

function must(command: string, ...args: string[]): void {
  const { status, stderr, error } = run(command, ...args)
  if (status !== 0) throw new Error(`${command}: ${stderr || error?.message}`)
}

/** Mounts an XFS of its own, that can share blocks between files, from a file; answers how to take it away again. */
export function mountXfs(image: string, directory: string): () => void {
  writeFileSync(image, '')
  truncateSync(image, 2 * 1024 ** 3)
  must('mkfs.xfs', '-q', '-m', 'reflink=1', image)
  must('mount', '-o', 'loop', image, directory)
  chmodSync(directory, 0o755)
  return () => must('umount', directory)
}

/** Mounts a file system in memory of so many bytes; answers how to take it away again. */
export function mountTmpfs(directory: string, bytes: number): () => void {
  must('mount', '-t', 'tmpfs', '-o', `size=${bytes},mode=755`, 'tmpfs', directory)
  return () => must('umount', directory)
}

/** Why a file system cannot be mounted here by one of these functions; null where it can. */
export function whyNotMounted(mount: (scratch: string, directory: string) => () => void): string | null {
  if (process.getuid?.() !== 0) return 'needs root'
  const scratch = makeScratchDirectory()
  try {
    const directory = join(scratch.path, 'm')
    run('mkdir', directory)
    mount(scratch.path, directory)()
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    scratch.remove()
  }
}

/** Why no XFS can be mounted here; null where it can. */
export function whyNoXfs(): string | null {
  if (process.getuid?.() === 0 && run('mkfs.xfs', '-V').error) return 'mkfs.xfs is missing: package xfsprogs'
  return whyNotMounted((scratch, directory) => mountXfs(join(scratch, 'image'), directory))
}
