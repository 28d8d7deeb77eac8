import { closeSync, openSync, readSync } from 'node:fs'

// One buffer for all: files of /proc have no size, and reading one the usual way takes a fresh 64 kB each time. The agent
// reads some hundreds of them a second.
const buffer = Buffer.alloc(4_096)
const largeBuffer = Buffer.alloc(64 * 1_024)

/** A file of the kernel's: no user can put anything in its place. */
export type KernelFile = `/proc/${string}`

/** The first 4 kB of a file of the kernel's as Latin-1 text. Throws as open does. */
export function readKernelFile(path: KernelFile): string {
  return readBeginning(path, buffer, 'latin1')
}

/** The first 64 kB of one, as UTF-8: a process can make its command line as long as it likes. Throws as open does. */
export function readLongKernelFile(path: KernelFile): string {
  return readBeginning(path, largeBuffer, 'utf8')
}

function readBeginning(path: KernelFile, into: Buffer, encoding: 'latin1' | 'utf8'): string {
  const fd = openSync(path, 'r')
  try {
    return into.toString(encoding, 0, readSync(fd, into, 0, into.length, 0))
  } finally {
    closeSync(fd)
  }
}
