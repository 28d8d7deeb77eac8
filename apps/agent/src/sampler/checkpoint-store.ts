import { appendFileSync, mkdirSync, statSync, truncateSync } from 'node:fs'
import { dirname } from 'node:path'
import { NumberedCheckpoint } from '@floe/agent-contract'
import { replaceFile } from '@floe/host/replace-file'
import type { CheckpointRecord } from '@floe/telemetry'
import { z } from 'zod'
import { readOwnedFile } from '../host/owned-files'
import { parseStoredLines, storedLines } from './stored-lines'

/** A place in the server log: everything before it has been read. */
export const LogPosition = z.object({ file: z.string(), offset: z.number().int() })
export type LogPosition = z.infer<typeof LogPosition>

const Line = z.object({ checkpoint: NumberedCheckpoint, position: LogPosition })

/** Kept at least, and the length at which the file is cut back to that. */
const KEEP = 1_500
const COMPACT_AT = 3_000
/** Kept in memory: what a reader who follows asks for. The rest is read from the file. */
const TAIL = 32

type Line = z.infer<typeof Line>

/**
 * An instance's checkpoints in an append-only file. Each line also says up to where the server log had been read, so
 * that record and position are one write and a restart neither loses nor repeats a checkpoint.
 */
export class CheckpointStore {
  readonly #path: string
  readonly #onStored: (error: unknown) => void
  #tail: Line[]
  #count: number
  /** Of the tail, how many lines are not in the file: they did not fit. */
  #unwritten = 0

  /** `onStored` is called with the error when a checkpoint could not be written, and with null when all are. */
  constructor(path: string, onStored: (error: unknown) => void = () => {}) {
    this.#path = path
    this.#onStored = onStored
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const text = readOwnedFile(path) ?? ''
    const lines = parseStoredLines(text, Line)
    this.#tail = lines.slice(-TAIL)
    this.#count = lines.length
    // a line cut off by a kill must not swallow the next one
    if (text !== '' && !text.endsWith('\n')) this.#rewrite(lines)
  }

  get position(): LogPosition | null {
    return this.#tail.at(-1)?.position ?? null
  }

  append(record: CheckpointRecord, position: LogPosition): NumberedCheckpoint {
    const checkpoint = { ...record, seq: (this.#tail.at(-1)?.checkpoint.seq ?? 0) + 1 }
    this.#tail.push({ checkpoint, position })
    if (this.#tail.length > TAIL) this.#tail.shift()
    this.#count++
    this.#unwritten = Math.min(this.#unwritten + 1, this.#tail.length)
    this.write()
    return checkpoint
  }

  /**
   * Writes what is not in the file yet. Never throws: on a full disk the newest checkpoints stay in memory, and the
   * server log holds them all; after a restart they are read from there again.
   */
  write(): void {
    if (this.#unwritten === 0) return
    const before = sizeOf(this.#path)
    try {
      const lines = this.#tail.slice(-this.#unwritten)
      appendFileSync(this.#path, storedLines(lines), { mode: 0o600 })
      this.#unwritten = 0
      if (this.#count >= COMPACT_AT)
        this.#rewrite(parseStoredLines(readOwnedFile(this.#path) ?? '', Line).slice(-KEEP))
      this.#onStored(null)
    } catch (error) {
      // a part of a line must not swallow the next one
      if (this.#unwritten > 0 && sizeOf(this.#path) > before) truncateSync(this.#path, before)
      this.#onStored(error)
    }
  }

  /** Checkpoints with a greater number than `afterSeq`, oldest first. */
  read(afterSeq: number, limit: number): NumberedCheckpoint[] {
    const inTail = this.#count <= this.#tail.length || afterSeq + 1 >= (this.#tail[0]?.checkpoint.seq ?? 0)
    const lines = inTail ? this.#tail : parseStoredLines(readOwnedFile(this.#path) ?? '', Line)
    return lines
      .filter((l) => l.checkpoint.seq > afterSeq)
      .slice(0, limit)
      .map((l) => l.checkpoint)
  }

  #rewrite(lines: readonly Line[]): void {
    replaceFile(this.#path, storedLines(lines))
    this.#count = lines.length
  }
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size
  } catch {
    return 0
  }
}
