import { closeSync, fstatSync, lstatSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { parseCheckpointLine, parseRecoveryLine, type RunningCheckpoint } from '@floe/telemetry'
import { logFiles, logTime, parseEntry } from '../engine/process/server-log'
import type { EngineUser } from '../host/engine-user'
import { openOwnedFile } from '../host/owned-files'
import { removeInTree } from '../host/tree'
import type { CheckpointStore, LogPosition } from './checkpoint-store'

const CHUNK_BYTES = 1 << 20
const CHUNKS_PER_STEP = 8
/** Server logs kept per instance, in bytes and in files. */
const KEEP_LOG_BYTES = 256 * 1024 * 1024
/** Who may write these lines; a client could log the same words. */
const writers = new Set(['checkpointer', 'startup', 'standalone backend', 'postmaster'])
/** Words of which each line has one that says something of a checkpoint or of a start. */
const mentions = ['point ', 'database system ', 'starting backup recovery', 'entering standby mode']

/** A start after a crash: from when the engine looked at its data directory until it let clients in; ms since the epoch. */
export type CrashStart = { beganAt: number; readyAt: number; standby: boolean }

export type RunningCheckpointStart = Pick<RunningCheckpoint, 'kind' | 'reasons' | 'startedAt'>

/**
 * Follows the server's JSON log over its rotation, keeps each checkpoint, and knows the last start after a crash. A step reads what has been written since
 * the last one, at most 8 MB, so that a chatty log delays checkpoints rather than the agent.
 */
export class CheckpointFollower {
  readonly #directory: string
  readonly #owner: () => EngineUser
  readonly #store: CheckpointStore
  #position: LogPosition | null
  #running: RunningCheckpointStart | null = null
  #recovering: Omit<CrashStart, 'readyAt'> | null = null
  #crashStart: CrashStart | null = null
  #files: string[] = []
  #listedAt = Number.NEGATIVE_INFINITY

  /** `owner`: whose the log's files are. */
  constructor(logDirectory: string, owner: () => EngineUser, store: CheckpointStore) {
    this.#directory = logDirectory
    this.#owner = owner
    this.#store = store
    this.#position = store.position
  }

  /** The checkpoint that has started and not completed, as far as the log says. */
  get running(): RunningCheckpointStart | null {
    return this.#running
  }

  /** The last start, where it followed a crash and has been seen from its first line on; null for any other. */
  get crashStart(): CrashStart | null {
    return this.#crashStart
  }

  /** The engine has ended: what was running will not complete. */
  ended(): void {
    this.#running = null
  }

  /** Reads on; returns how many checkpoints completed. */
  step(now = performance.now()): number {
    this.#list(now)
    let completed = 0
    for (let chunk = 0; chunk < CHUNKS_PER_STEP; chunk++) {
      const file = this.#fileToRead()
      if (!file) break
      const offset = file === this.#position?.file ? this.#position.offset : 0
      const read = this.#readLines(file, offset)
      if (read.consumed === 0) {
        // nothing more in this file; when there is a later one, this one is complete
        const next = this.#files[this.#files.indexOf(file) + 1]
        if (!next) break
        this.#position = { file: next, offset: 0 }
        continue
      }
      completed += this.#take(file, offset, read)
      this.#position = { file, offset: offset + read.consumed }
    }
    return completed
  }

  #fileToRead(): string | undefined {
    if (!this.#position) return this.#files[0]
    const { file } = this.#position
    return this.#files.includes(file) ? file : this.#files.find((f) => f > file)
  }

  #list(now: number): void {
    const position = this.#position
    // a rotation shows within 2 s; listing costs more than a look at the file
    if (now - this.#listedAt < 2_000 && position) return
    this.#listedAt = now
    this.#files = logFiles(this.#directory, '.json')
    this.#prune()
  }

  /** Keeps the server log within bounds; the newest file and the one being read stay. */
  #prune(): void {
    let bytes = 0
    for (const name of [...this.#files].reverse()) {
      const path = join(this.#directory, name)
      const plain = path.replace(/\.json$/, '.log')
      bytes += sizeOf(path) + sizeOf(plain)
      if (bytes <= KEEP_LOG_BYTES || name === this.#files.at(-1) || name >= (this.#position?.file ?? ''))
        continue
      for (const old of [path, plain]) removeInTree(old, this.#owner())
    }
  }

  /** Whole lines that mention a checkpoint or a start, and how many bytes were read over. */
  #readLines(file: string, offset: number): { consumed: number; lines: { text: string; end: number }[] } {
    let fd: number | null
    try {
      fd = openOwnedFile(join(this.#directory, file))
    } catch {
      return { consumed: 0, lines: [] }
    }
    if (fd === null) return { consumed: 0, lines: [] }
    try {
      const available = fstatSync(fd).size - offset
      if (available <= 0) return { consumed: 0, lines: [] }
      const buffer = Buffer.allocUnsafe(Math.min(available, CHUNK_BYTES))
      const bytes = buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, offset))
      const end = bytes.lastIndexOf(0x0a) + 1
      // a line longer than a chunk is no checkpoint's
      if (end === 0) return { consumed: bytes.length === CHUNK_BYTES ? bytes.length : 0, lines: [] }
      const lines = new Map<number, string>()
      for (const words of mentions)
        for (let at = bytes.indexOf(words); at !== -1 && at < end; ) {
          const from = bytes.lastIndexOf(0x0a, at) + 1
          const to = bytes.indexOf(0x0a, at)
          lines.set(offset + to + 1, bytes.toString('utf8', from, to))
          at = bytes.indexOf(words, to)
        }
      const inOrder = [...lines].sort(([a], [b]) => a - b)
      return { consumed: end, lines: inOrder.map(([lineEnd, text]) => ({ text, end: lineEnd })) }
    } finally {
      closeSync(fd)
    }
  }

  #take(file: string, _offset: number, read: { lines: { text: string; end: number }[] }): number {
    let completed = 0
    for (const { text, end } of read.lines) {
      const entry = parseEntry(text)
      if (!entry?.message || !writers.has(entry.backend_type ?? '')) continue
      const at = logTime(entry.timestamp)
      if (at === null) continue
      this.#takeStart(entry.message, at)
      const line = parseCheckpointLine(entry.message)
      if (!line) continue
      if (line.event === 'starting') {
        this.#running = { kind: line.kind, reasons: line.reasons, startedAt: at }
        continue
      }
      const started = this.#running?.kind === line.record.kind ? this.#running : null
      this.#store.append(
        {
          ...line.record,
          reasons: started?.reasons ?? [],
          startedAt: started?.startedAt ?? null,
          completedAt: at,
        },
        { file, offset: end },
      )
      this.#running = null
      completed++
    }
    return completed
  }

  #takeStart(message: string, at: number): void {
    switch (parseRecoveryLine(message)) {
      case 'crashed':
        this.#recovering = { beganAt: at, standby: false }
        this.#crashStart = null
        break
      case 'clean':
        this.#crashStart = null
        this.#recovering = null
        break
      // its control file is that of an engine that ran when it was copied
      case 'copied':
        this.#recovering = null
        break
      case 'standby':
        if (this.#recovering) this.#recovering.standby = true
        break
      case 'ready':
        if (this.#recovering) this.#crashStart = { ...this.#recovering, readyAt: at }
        this.#recovering = null
    }
  }
}

function sizeOf(path: string): number {
  try {
    return lstatSync(path).size
  } catch {
    return 0
  }
}
