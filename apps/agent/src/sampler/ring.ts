import { closeSync, fstatSync, mkdirSync, openSync, readdirSync, readSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { decodeValues, encodeValues, metrics, RING_MINUTES, type Sample } from '@floe/telemetry'

const MAGIC = 0x464c4f45
const HEADER_BYTES = 32
const RECORDS_PER_SEGMENT = 300
const RECORD_FIELDS = 2
/** Samples kept in memory while they cannot be written, and after how many more writing is tried again. */
const MEMORY_RECORDS_MAX = 3 * RECORDS_PER_SEGMENT
const WRITE_AGAIN_AFTER = 10

type Segment = {
  path: string
  firstSeq: number
  width: number
  count: number
  newestAt: number
  /** Its records, while there is no file of it. */
  memory: Float64Array[] | null
}

/**
 * The last 60 minutes of an instance's samples in segment files. A record is `at, intervalMs, value…` as doubles (NaN:
 * unknown); its place in the segment is its number. After the last record stands a trailer with what the sampler needs
 * to go on (its counters). Record and trailer are written by one call, so that a killed agent has both or neither.
 * Nothing is synced: after a crash of the machine the engine's counters start from zero as well.
 *
 * Where the files cannot be written (a full disk), the ring goes on in memory with the same numbers, for the newest 15
 * minutes, and writes them down once it can. Appending never throws: what measures an instance must not stop measuring
 * because a disk is full.
 */
export class SampleRing {
  readonly #directory: string
  readonly #keepMs: number
  readonly #onStored: (error: unknown) => void
  #segments: Segment[] = []
  #fd: number | null = null
  #trailer: Float64Array | null = null
  #triedAt = 0

  /** `onStored` is called with the error when samples can no longer be written, and with null when they can again. */
  constructor(directory: string, keepMinutes = RING_MINUTES, onStored: (error: unknown) => void = () => {}) {
    this.#directory = directory
    this.#keepMs = keepMinutes * 60_000
    this.#onStored = onStored
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(directory)
      .filter((n) => n.endsWith('.samples'))
      .sort())
      this.#openSegment(name)
  }

  get oldestSeq(): number | null {
    return this.#segments.find((s) => s.count > 0)?.firstSeq ?? null
  }

  get newestSeq(): number | null {
    const last = this.#segments.findLast((s) => s.count > 0)
    return last ? last.firstSeq + last.count - 1 : null
  }

  /** The trailer written with the newest sample, or null when there is none that is whole. */
  get trailer(): Float64Array | null {
    return this.#trailer
  }

  /** Appends the next sample and returns its number. */
  append(sample: Omit<Sample, 'seq'>, trailer: Float64Array): number {
    const seq = (this.newestSeq ?? -1) + 1
    const record = Float64Array.from([
      sample.at,
      sample.intervalMs,
      ...encodeValues(sample.values).map((v) => v ?? Number.NaN),
    ])
    this.#trailer = trailer
    if (!this.#segments.at(-1)?.memory)
      try {
        this.#write(seq, record, trailer)
      } catch (error) {
        this.#goOnInMemory(seq, error)
      }
    const newest = this.#segments.at(-1) as Segment
    if (newest.memory) this.#remember(newest, newest.memory, seq, record)
    newest.newestAt = sample.at
    this.#drop(sample.at)
    return seq
  }

  #write(seq: number, record: Float64Array, trailer: Float64Array): void {
    let segment = this.#segments.at(-1)
    if (
      !segment ||
      this.#fd === null ||
      segment.count >= RECORDS_PER_SEGMENT ||
      segment.width !== metrics.length
    )
      segment = this.#beginSegment(seq)
    const bytes = Buffer.concat([bytesOf(record), encodeTrailer(trailer)])
    writeWhole(this.#fd as number, bytes, HEADER_BYTES + segment.count * recordBytes(segment.width))
    segment.count++
  }

  #goOnInMemory(firstSeq: number, error: unknown): void {
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = null
    const path = this.#pathOf(firstSeq)
    this.#segments.push({ path, firstSeq, width: metrics.length, count: 0, newestAt: 0, memory: [] })
    this.#triedAt = firstSeq
    this.#onStored(error)
  }

  /** Keeps a record in memory and, now and then, tries to write down what is there. */
  #remember(segment: Segment, memory: Float64Array[], seq: number, record: Float64Array): void {
    memory.push(record)
    segment.count++
    while (memory.length > MEMORY_RECORDS_MAX) {
      memory.shift()
      segment.firstSeq++
      segment.count--
    }
    if (seq - this.#triedAt < WRITE_AGAIN_AFTER) return
    this.#triedAt = seq
    this.writeAgain()
  }

  /** Tries to write down what is only in memory. Never throws. */
  writeAgain(): void {
    const segment = this.#segments.at(-1)
    const memory = segment?.memory
    if (!segment || !memory) return
    const path = this.#pathOf(segment.firstSeq)
    try {
      const fd = openSegmentFile(path, segment)
      try {
        const records = Buffer.concat(memory.map(bytesOf))
        writeWhole(fd, Buffer.concat([records, encodeTrailer(this.#trailer as Float64Array)]), HEADER_BYTES)
      } catch (error) {
        closeSync(fd)
        rmSync(path, { force: true })
        throw error
      }
      segment.path = path
      segment.memory = null
      this.#fd = fd
      this.#onStored(null)
    } catch {
      // still no room
    }
  }

  /** Samples with a greater number than `afterSeq`, oldest first. */
  read(afterSeq: number, limit: number): Sample[] {
    const samples: Sample[] = []
    for (const s of this.#segments) {
      if (samples.length >= limit) break
      const from = Math.max(afterSeq + 1, s.firstSeq)
      const to = Math.min(s.firstSeq + s.count, from + limit - samples.length)
      if (from < to) samples.push(...readRecords(s, from, to))
    }
    return samples
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = null
  }

  #openSegment(name: string): void {
    const path = join(this.#directory, name)
    const fd = openSync(path, 'r+')
    const size = fstatSync(fd).size
    const header = Buffer.alloc(HEADER_BYTES)
    const whole =
      readSync(fd, header, 0, HEADER_BYTES, 0) === HEADER_BYTES && header.readUInt32LE(0) === MAGIC
    if (!whole) {
      closeSync(fd)
      rmSync(path)
      return
    }
    const width = header.readUInt32LE(4)
    const trailerBytes = header.readUInt32LE(8)
    const firstSeq = header.readDoubleLE(16)
    const count = Math.max(0, Math.floor((size - HEADER_BYTES - trailerBytes) / recordBytes(width)))
    const segment: Segment = { path, firstSeq, width, count, newestAt: 0, memory: null }
    if (count === 0) {
      closeSync(fd)
      rmSync(path)
      return
    }
    segment.newestAt = readRecords(segment, firstSeq + count - 1, firstSeq + count)[0]?.at ?? 0
    const tail = Buffer.alloc(trailerBytes)
    readSync(fd, tail, 0, trailerBytes, HEADER_BYTES + count * recordBytes(width))
    this.#trailer = decodeTrailer(tail)
    this.#segments.push(segment)
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = fd
  }

  #beginSegment(firstSeq: number): Segment {
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = null
    const path = this.#pathOf(firstSeq)
    const segment: Segment = { path, firstSeq, width: metrics.length, count: 0, newestAt: 0, memory: null }
    this.#fd = openSegmentFile(path, segment)
    this.#segments.push(segment)
    return segment
  }

  #pathOf(firstSeq: number): string {
    return join(this.#directory, `${String(firstSeq).padStart(15, '0')}.samples`)
  }

  /** Drops segments whose newest sample is too old; the numbers go on. */
  #drop(now: number): void {
    for (;;) {
      const oldest = this.#segments[0]
      if (!oldest || this.#segments.length < 2 || now - oldest.newestAt < this.#keepMs) return
      this.#segments.shift()
      rmSync(oldest.path, { force: true })
    }
  }
}

/** Makes the file of a segment with its header; leaves none behind when that fails. */
function openSegmentFile(path: string, segment: Pick<Segment, 'firstSeq' | 'width'>): number {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32LE(MAGIC, 0)
  header.writeUInt32LE(segment.width, 4)
  header.writeUInt32LE(TRAILER_BYTES, 8)
  header.writeDoubleLE(segment.firstSeq, 16)
  const fd = openSync(path, 'w+', 0o600)
  try {
    writeWhole(fd, header, 0)
    return fd
  } catch (error) {
    closeSync(fd)
    rmSync(path, { force: true })
    throw error
  }
}

/** A full disk may take a part of a write; the error then comes with the next one. */
function writeWhole(fd: number, bytes: Buffer, at: number): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, at + done)
}

const recordBytes = (width: number) => (RECORD_FIELDS + width) * 8
const bytesOf = (a: Float64Array) => Buffer.from(a.buffer, a.byteOffset, a.byteLength)

function readRecords(s: Segment, from: number, to: number): Sample[] {
  const size = recordBytes(s.width)
  const buffer = s.memory
    ? Buffer.concat(s.memory.slice(from - s.firstSeq, to - s.firstSeq).map(bytesOf))
    : readFileRecords(s, from, to)
  const bytes = buffer.length
  const samples: Sample[] = []
  for (let i = 0; (i + 1) * size <= bytes; i++) {
    const n = Array.from({ length: RECORD_FIELDS + s.width }, (_, f) => buffer.readDoubleLE(i * size + f * 8))
    const [at, interval, ...values] = n as [number, number, ...number[]]
    samples.push({
      seq: from + i,
      at,
      intervalMs: interval,
      values: decodeValues(values.map((v) => (Number.isNaN(v) ? null : v))),
    })
  }
  return samples
}

function readFileRecords(s: Segment, from: number, to: number): Buffer {
  const size = recordBytes(s.width)
  const buffer = Buffer.alloc((to - from) * size)
  const fd = openSync(s.path, 'r')
  try {
    return buffer.subarray(
      0,
      readSync(fd, buffer, 0, buffer.length, HEADER_BYTES + (from - s.firstSeq) * size),
    )
  } finally {
    closeSync(fd)
  }
}

/** Room for 120 numbers, a count and a checksum. */
const TRAILER_NUMBERS = 120
const TRAILER_BYTES = 8 + TRAILER_NUMBERS * 8

function encodeTrailer(numbers: Float64Array): Buffer {
  if (numbers.length > TRAILER_NUMBERS) throw new RangeError('trailer too long')
  const bytes = Buffer.alloc(TRAILER_BYTES)
  bytesOf(numbers).copy(bytes, 8)
  bytes.writeUInt32LE(numbers.length, 4)
  bytes.writeUInt32LE(crc32(bytes.subarray(4)), 0)
  return bytes
}

function decodeTrailer(bytes: Buffer): Float64Array | null {
  if (bytes.length < 8 || crc32(bytes.subarray(4)) !== bytes.readUInt32LE(0)) return null
  const count = bytes.readUInt32LE(4)
  if (8 + count * 8 > bytes.length) return null
  return Float64Array.from({ length: count }, (_, i) => bytes.readDoubleLE(8 + i * 8))
}
