import { createHash } from 'node:crypto'
import { closeSync, constants, createReadStream, fstatSync, openSync, readSync } from 'node:fs'
import { type FaultError, fault } from '@floe/domain'

/** More than any file holds that is read whole, unless its reader says another bound. */
export const READ_MAX_BYTES = 1 << 20

/** Neither a symbolic link nor what waits for a writer is opened, and no terminal becomes ours. */
const reading = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

/** Said where something else than a regular file has a name that is to be read. */
export const notAFile = (path: string): FaultError =>
  fault('host.not_a_file', `"${path}" is not a regular file`, {
    hint: 'Something else was put in its place. Remove it.',
  })

/**
 * Reads a file that another user may have put there: no link is followed in its place, a pipe or a device is refused
 * instead of waited for, and no more is read than `maxBytes`. Throws `host.not_a_file`, `host.file_too_large`, or as
 * open does: ENOENT when there is none.
 */
export function readRegularFile(path: string, maxBytes = READ_MAX_BYTES): string {
  let fd: number
  try {
    fd = openSync(path, reading)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // a link, or a socket
    throw code === 'ELOOP' || code === 'ENXIO' ? notAFile(path) : error
  }
  try {
    return readDescriptor(fd, path, maxBytes)
  } finally {
    closeSync(fd)
  }
}

/**
 * Reads all of what was opened, by the same rules: a file that is said to be short may grow while it is read. The caller
 * closes it.
 */
export function readDescriptor(fd: number, path: string, maxBytes = READ_MAX_BYTES): string {
  const stat = fstatSync(fd)
  if (!stat.isFile()) throw notAFile(path)
  if (stat.size > maxBytes) throw tooLarge(path, maxBytes)
  // one byte more than it has now: the read after the last one says that it has ended
  let buffer = Buffer.allocUnsafe(stat.size + 1)
  let length = 0
  for (;;) {
    const read = readSync(fd, buffer, length, buffer.length - length, length)
    if (read === 0) return buffer.toString('utf8', 0, length)
    length += read
    if (length > maxBytes) throw tooLarge(path, maxBytes)
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(2 * length, maxBytes + 1))
  }
}

/** The sha256 of a file, in hexadecimal, however large it is. The caller trusts what is at that path, or opened it itself before. */
export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

const tooLarge = (path: string, maxBytes: number) =>
  fault('host.file_too_large', `file "${path}" is too large`, {
    detail: `It is larger than ${maxBytes} bytes.`,
    hint: 'Something else was put in its place. Remove it.',
  })
