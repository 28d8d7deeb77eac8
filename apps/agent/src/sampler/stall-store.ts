import { appendFileSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { NumberedStall } from '@floe/agent-contract'
import { replaceFile } from '@floe/host/replace-file'
import type { StallRecord } from '@floe/telemetry'
import { readOwnedFile } from '../host/owned-files'
import { parseStoredLines, storedLines } from './stored-lines'

/** Kept at least, and the length at which the file is cut back to that. */
const KEEP = 500
const COMPACT_AT = 1_000

/** An instance's stalls in an append-only file. */
export class StallStore {
  readonly #path: string
  readonly #onStored: (error: unknown) => void
  #stalls: NumberedStall[]
  /** Of the newest, how many are not in the file: they did not fit. */
  #unwritten = 0
  /** Whether the file may end in a part of a line. */
  #torn: boolean

  /** `onStored` is called with the error when a stall could not be written, and with null when all are. */
  constructor(path: string, onStored: (error: unknown) => void = () => {}) {
    this.#path = path
    this.#onStored = onStored
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const text = readOwnedFile(path) ?? ''
    this.#stalls = parseStoredLines(text, NumberedStall).slice(-COMPACT_AT)
    this.#torn = text !== '' && !text.endsWith('\n')
  }

  /** Its number is its start, so that numbers go on where the file was lost. */
  append(record: StallRecord): void {
    const seq = Math.max((this.#stalls.at(-1)?.seq ?? 0) + 1, Math.floor(record.startedAt))
    this.#stalls.push({ ...record, seq })
    this.#unwritten++
    this.write()
  }

  /** Writes what is not in the file yet. Never throws: on a full disk the newest stay in memory. */
  write(): void {
    if (this.#unwritten === 0) return
    try {
      const cut = this.#stalls.length >= COMPACT_AT
      if (cut) this.#stalls = this.#stalls.slice(-KEEP)
      if (cut || this.#torn) replaceFile(this.#path, storedLines(this.#stalls))
      else {
        // until it is whole
        this.#torn = true
        appendFileSync(this.#path, storedLines(this.#stalls.slice(-this.#unwritten)), { mode: 0o600 })
      }
      this.#torn = false
      this.#unwritten = 0
      this.#onStored(null)
    } catch (error) {
      this.#onStored(error)
    }
  }

  /** Stalls with a greater number than `afterSeq`, oldest first. */
  read(afterSeq: number, limit: number): NumberedStall[] {
    return this.#stalls.filter((s) => s.seq > afterSeq).slice(0, limit)
  }
}
