import { appendFileSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { NumberedCheckpoint } from '@floe/agent-contract'
import type { CheckpointRecord } from '@floe/telemetry'
import { z } from 'zod'
import { readOwnedFile, replaceFile } from '../host/durable-files'

/** A place in the server log: everything before it has been read. */
export const LogPosition = z.object({ file: z.string(), offset: z.number().int() })
export type LogPosition = z.infer<typeof LogPosition>

const Line = z.object({ checkpoint: NumberedCheckpoint, position: LogPosition })

const KEEP = 1_500
const COMPACT_AT = 3_000

/**
 * An instance's checkpoints in an append-only file. Each line also says up to where the server log had been read, so
 * that record and position are one write and a restart neither loses nor repeats a checkpoint.
 */
export class CheckpointStore {
  readonly #path: string
  #lines: z.infer<typeof Line>[] = []

  constructor(path: string) {
    this.#path = path
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const text = readOwnedFile(path) ?? ''
    const whole = text.slice(0, text.lastIndexOf('\n') + 1)
    for (const line of whole.split('\n')) {
      if (line === '') continue
      const parsed = Line.safeParse(JSON.parse(line))
      if (parsed.success) this.#lines.push(parsed.data)
    }
    // a line cut off by a kill must not swallow the next one
    if (whole.length !== text.length) this.#rewrite()
  }

  get position(): LogPosition | null {
    return this.#lines.at(-1)?.position ?? null
  }

  append(record: CheckpointRecord, position: LogPosition): NumberedCheckpoint {
    const checkpoint = { ...record, seq: (this.#lines.at(-1)?.checkpoint.seq ?? 0) + 1 }
    const line = { checkpoint, position }
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`, { mode: 0o600 })
    this.#lines.push(line)
    if (this.#lines.length >= COMPACT_AT) {
      this.#lines = this.#lines.slice(-KEEP)
      this.#rewrite()
    }
    return checkpoint
  }

  /** Checkpoints with a greater number than `afterSeq`, oldest first. */
  read(afterSeq: number, limit: number): NumberedCheckpoint[] {
    const out: NumberedCheckpoint[] = []
    for (const { checkpoint } of this.#lines) {
      if (out.length >= limit) break
      if (checkpoint.seq > afterSeq) out.push(checkpoint)
    }
    return out
  }

  #rewrite(): void {
    replaceFile(this.#path, this.#lines.map((l) => `${JSON.stringify(l)}\n`).join(''))
  }
}
