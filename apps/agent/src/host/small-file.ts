import { closeSync, openSync, readSync } from 'node:fs'

// One buffer for all: files of /proc have no size, and reading one the usual way takes a fresh 64 kB each time. The agent
// reads some hundreds of them a second.
const buffer = Buffer.alloc(4_096)

/** The first 4 kB of a file as Latin-1 text. Throws as open does. */
export function readSmallFile(path: string): string {
  const fd = openSync(path, 'r')
  try {
    return buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0))
  } finally {
    closeSync(fd)
  }
}
