import { fault } from '@floe/domain'

const BLOCK = 512
const NAME_BYTES_MAX = 100
/** The size field of a header holds eleven octal digits. */
const SIZE_MAX = 0o77_777_777_777

/** A file of an archive: its content has exactly `size` bytes. */
export type ArchiveEntry = { name: string; size: number; content: AsyncIterable<Uint8Array> | Uint8Array[] }

/** Which names an archive may hold, each once, and how large each may be. */
export type ArchiveBounds = { bytesMaxOf: (name: string) => number | null }

/** Writes a tar archive (ustar) of regular files, so that it can also be looked into without Floe. */
export async function* writeArchive(entries: Iterable<ArchiveEntry>): AsyncGenerator<Uint8Array> {
  for (const { name, size, content } of entries) {
    if (Buffer.byteLength(name) > NAME_BYTES_MAX || size > SIZE_MAX) throw new Error(`"${name}" does not fit`)
    yield header(name, size)
    let written = 0
    for await (const piece of content) {
      written += piece.length
      yield piece
    }
    // a file that grew or shrank meanwhile would shift everything after it
    if (written !== size) throw new Error(`"${name}" has ${written} bytes instead of ${size}`)
    yield Buffer.alloc(padding(size))
  }
  yield Buffer.alloc(2 * BLOCK)
}

const padding = (size: number) => (BLOCK - (size % BLOCK)) % BLOCK

function header(name: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK)
  const octal = (value: number, at: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
  block.write(name, 0)
  octal(0o600, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(size, 124, 12)
  octal(0, 136, 12)
  block.write('0', 156, 'latin1')
  block.write('ustar\x0000', 257, 'latin1')
  octal(checksum(block), 148, 7)
  block.write(' ', 155, 'latin1')
  return block
}

/** Sum of a header's bytes, with its own field as blanks. */
const checksum = (block: Buffer): number =>
  block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0)

const damaged = (detail: string) =>
  fault('backup.damaged', 'the file is not a backup of Floe', {
    detail,
    hint: 'Use a file that "./floe console backup" made.',
  })

/** Reads pieces of any length as portions of the length asked for. */
class Pieces {
  readonly #from: AsyncIterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array()

  constructor(from: AsyncIterable<Uint8Array>) {
    this.#from = from[Symbol.asyncIterator]()
  }

  /** At most so many bytes, at least one; null at the end. */
  async some(most: number): Promise<Uint8Array | null> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#from.next()
      if (done) return null
      this.#rest = value
    }
    const piece = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(piece.length)
    return piece
  }

  async exactly(length: number): Promise<Buffer> {
    const parts: Uint8Array[] = []
    for (let missing = length; missing > 0; ) {
      const piece = await this.some(missing)
      if (piece === null) throw damaged('It ends in the middle of a file.')
      parts.push(piece)
      missing -= piece.length
    }
    return Buffer.concat(parts)
  }
}

/**
 * Reads an archive and hands each file to `take`, which has to read its content to the end. The archive is a stranger's: only
 * regular files with names that the bounds know are taken, each once and no larger than it may be. Has succeeded only when the
 * archive's end was seen with nothing after it.
 */
export async function readArchive(
  from: AsyncIterable<Uint8Array>,
  { bytesMaxOf }: ArchiveBounds,
  take: (name: string, size: number, content: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<void> {
  const pieces = new Pieces(from)
  const seen = new Set<string>()
  for (;;) {
    const block = await pieces.exactly(BLOCK)
    if (isZero(block)) break
    const { name, size } = parseHeader(block)
    const most = bytesMaxOf(name)
    if (most === null || seen.has(name))
      throw damaged(`It has a file "${printable(name)}" that is none of a backup's.`)
    if (size > most) throw damaged(`File "${name}" has ${size} bytes; at most ${most} are taken.`)
    seen.add(name)
    let missing = size
    const content = async function* () {
      while (missing > 0) {
        const piece = await pieces.some(missing)
        if (piece === null) throw damaged(`It ends in the middle of file "${name}".`)
        missing -= piece.length
        yield piece
      }
    }
    await take(name, size, content())
    if (missing > 0) throw new Error(`"${name}" was not read to its end`)
    if (!isZero(await pieces.exactly(padding(size))))
      throw damaged(`File "${name}" is not ended as it has to be.`)
  }
  if (!isZero(await pieces.exactly(BLOCK)) || (await pieces.some(1)) !== null)
    throw damaged('It is not ended as it has to be.')
}

const isZero = (bytes: Uint8Array) => bytes.every((byte) => byte === 0)
const printable = (text: string) => JSON.stringify(text).slice(1, -1)

function parseHeader(block: Buffer): { name: string; size: number } {
  const text = (at: number, length: number) => {
    const end = block.indexOf(0, at)
    return block.toString('utf8', at, end < 0 ? at + length : Math.min(end, at + length))
  }
  const number = (at: number, length: number) => {
    const digits = text(at, length).trim()
    if (!/^[0-7]+$/.test(digits)) throw damaged('A header of it cannot be read.')
    return Number.parseInt(digits, 8)
  }
  const name = text(0, NAME_BYTES_MAX)
  if (number(148, 8) !== checksum(block)) throw damaged('A header of it is damaged.')
  // links, directories, devices, and names that go on in another field
  if (block[156] !== 0x30 || block.toString('latin1', 257, 263) !== 'ustar\0' || text(345, 155) !== '')
    throw damaged(`"${printable(name)}" is no regular file.`)
  return { name, size: number(124, 12) }
}
