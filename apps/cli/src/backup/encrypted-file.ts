import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  read,
  readSync,
  renameSync,
  rmSync,
  write,
} from 'node:fs'
import { dirname } from 'node:path'
import { ReadableStream as WebStream } from 'node:stream/web'
import { promisify } from 'node:util'
import { fault } from '@floe/domain'
import { syncDirectory } from '@floe/host/replace-file'
import { Decrypter, Encrypter } from 'age-encryption'

const writeSome = promisify(write)
const readSome = promisify(read)

const PIECE_BYTES = 256 * 1024

/** age's header with one passphrase is about 150 bytes long. */
const HEADER_BYTES_MAX = 1_024
const header = /^age-encryption\.org\/v1\n-> scrypt [^\n]{1,100}\n[^\n]{1,100}\n--- [^\n]{1,100}\n/

const notWritten = (file: string, cause: unknown) =>
  fault('backup.not_written', `could not write "${file}"`, {
    detail: cause instanceof Error ? cause.message : String(cause),
    cause,
  })

/**
 * Writes a new file encrypted with a passphrase, in the format of age (`age -d FILE` opens it), for its owner alone. It has its
 * name only once all of it is on the disk; a file that is there already is never replaced. Answers its size.
 */
export async function writeEncrypted(
  file: string,
  passphrase: string,
  content: AsyncIterable<Uint8Array>,
  /** log2 of scrypt's N; for tests. */
  workFactor = 18,
): Promise<number> {
  const staging = `${file}.${randomBytes(6).toString('hex')}.part`
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  let fd: number
  try {
    fd = openSync(staging, flags, 0o600)
  } catch (cause) {
    throw notWritten(file, cause)
  }
  try {
    let size = 0
    try {
      const encrypter = new Encrypter()
      encrypter.setPassphrase(passphrase)
      encrypter.setScryptWorkFactor(workFactor)
      for await (const piece of await encrypter.encrypt(webStream(bytesOf(content))))
        for (let done = 0; done < piece.length; ) {
          const { bytesWritten } = await writeSome(fd, piece, done, piece.length - done, null)
          done += bytesWritten
          size += bytesWritten
        }
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    giveName(staging, file)
    return size
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') throw fileExists(file)
    if ((cause as NodeJS.ErrnoException).syscall !== undefined) throw notWritten(file, cause)
    throw cause
  } finally {
    rmSync(staging, { force: true })
    syncDirectory(dirname(file))
  }
}

/** Unlike a rename a link fails where the name is taken; not every file system has them. */
function giveName(staging: string, file: string): void {
  try {
    linkSync(staging, file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (!code || !['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(code)) throw error
    if (existsSync(file)) throw fileExists(file)
    renameSync(staging, file)
  }
}

export const fileExists = (file: string) =>
  fault('backup.exists', `"${file}" is there already`, {
    hint: 'Backups are never overwritten: name another file.',
  })

const webStream = (from: AsyncIterable<Uint8Array>) => WebStream.from(from) as ReadableStream<Uint8Array>

/** The bytes of an open file from its beginning. */
export async function* piecesOf(fd: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const { bytesRead, buffer } = await readSome(fd, Buffer.allocUnsafe(PIECE_BYTES), 0, PIECE_BYTES, at)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}

/** Copies: a piece may be written to again by the one it came from. */
async function* bytesOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of content) if (piece.length > 0) yield new Uint8Array(piece)
}

const notOurs = (file: string, detail: string) =>
  fault('backup.damaged', `"${file}" is not a backup of Floe`, {
    detail,
    hint: 'Use a file that "./floe console backup" made.',
  })

/**
 * The content of such a file. What was read is good only once its end was reached without an error: each portion is verified
 * by itself, and that none is missing is known at the end.
 */
export async function* readEncrypted(file: string, passphrase: string): AsyncGenerator<Uint8Array> {
  let fd: number
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch (cause) {
    throw fault('backup.not_read', `could not read "${file}"`, {
      detail: cause instanceof Error ? cause.message : String(cause),
      cause,
    })
  }
  try {
    if (!fstatSync(fd).isFile()) throw notOurs(file, 'It is not a regular file.')
    const start = Buffer.alloc(HEADER_BYTES_MAX)
    const length = readSync(fd, start, 0, start.length, 0)
    if (!header.test(start.toString('latin1', 0, length)))
      throw notOurs(file, 'It does not begin like one that is encrypted with a passphrase.')
    const decrypter = new Decrypter()
    decrypter.addPassphrase(passphrase)
    let plain: AsyncIterable<Uint8Array>
    try {
      plain = await decrypter.decrypt(webStream(piecesOf(fd)))
    } catch (cause) {
      throw fault('backup.not_opened', `could not decrypt "${file}"`, {
        detail: 'The passphrase is wrong, or the file is damaged.',
        cause,
      })
    }
    try {
      yield* plain
    } catch (cause) {
      throw fault('backup.damaged', `"${file}" is damaged`, {
        detail: 'Part of it was changed or is missing.',
        hint: 'Copy it again from where it was kept, or use another backup.',
        cause,
      })
    }
  } finally {
    closeSync(fd)
  }
}
