import { closeSync, openSync, readSync } from 'node:fs'
import { openOwnedFile } from './durable-files'

// One buffer for all: files of /proc have no size, and reading one the usual way takes a fresh 64 kB each time. The agent
// reads some hundreds of them a second.
const buffer = Buffer.alloc(4_096)
const largeBuffer = Buffer.alloc(64 * 1_024)

/** The first 4 kB of a file of the kernel's as Latin-1 text. Throws as open does. */
export function readSmallFile(path: string): string {
  return readAndClose(openSync(path, 'r'))
}

/** The first 4 kB of a file that an engine's user may write to, as Latin-1 text; null when there is none. Throws as openOwnedFile() does. */
export function readSmallOwnedFile(path: string): string | null {
  const fd = openOwnedFile(path)
  return fd === null ? null : readAndClose(fd)
}

/** The first 64 kB of one, as UTF-8: a process can make its command line as long as it likes. Throws as open does. */
export function readBeginning(path: string): string {
  return readAndClose(openSync(path, 'r'), largeBuffer, 'utf8')
}

function readAndClose(fd: number, into = buffer, encoding: 'latin1' | 'utf8' = 'latin1'): string {
  try {
    return into.toString(encoding, 0, readSync(fd, into, 0, into.length, 0))
  } finally {
    closeSync(fd)
  }
}
