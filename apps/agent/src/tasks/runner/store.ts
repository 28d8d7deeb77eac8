import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { TaskInput, TaskKey, TaskLogLine, TaskState } from '@floe/agent-contract'
import { Fault } from '@floe/domain'
import { replaceFile } from '@floe/host/replace-file'
import { z } from 'zod'

/** A task as it is kept. It is written before anything is done and before its end is reported to anybody. */
export const StoredTask = z.object({
  version: z.literal(1),
  key: TaskKey,
  task: TaskInput,
  state: TaskState,
  cancelAsked: z.boolean(),
  result: z.record(z.string(), z.unknown()).nullable(),
  fault: Fault.nullable(),
  startedAt: z.number(),
  endedAt: z.number().nullable(),
})
export type StoredTask = z.infer<typeof StoredTask>

/** How long an ended task can still be asked for. */
const KEEP_MS = 7 * 86_400_000

/**
 * Tasks in files, one each, with their log lines in a file beside. A file that does not read as a task is moved to
 * `unreadable/` and reported: its key then counts as never started, which is safe because every task may run twice.
 */
export class TaskStore {
  readonly #directory: string
  readonly #unreadable: string
  readonly #onUnreadable: (path: string, reason: string) => void

  constructor(stateDirectory: string, onUnreadable: (path: string, reason: string) => void = () => {}) {
    this.#directory = join(stateDirectory, 'tasks')
    this.#unreadable = join(this.#directory, 'unreadable')
    this.#onUnreadable = onUnreadable
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
  }

  /** Where the files lie that could not be read, newest last. */
  unreadable(): string[] {
    if (!existsSync(this.#unreadable)) return []
    return readdirSync(this.#unreadable)
      .sort()
      .map((name) => join(this.#unreadable, name))
  }

  find(key: TaskKey): StoredTask | null {
    return this.#read(`${this.#name(key)}.json`)
  }

  #read(file: string): StoredTask | null {
    const path = join(this.#directory, file)
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
    try {
      return StoredTask.parse(JSON.parse(text))
    } catch (error) {
      mkdirSync(this.#unreadable, { recursive: true, mode: 0o700 })
      const aside = join(this.#unreadable, `${Date.now()}-${file}`)
      renameSync(path, aside)
      this.#onUnreadable(aside, error instanceof Error ? error.message : String(error))
      return null
    }
  }

  put(task: StoredTask): void {
    replaceFile(this.#path(task.key, 'json'), `${JSON.stringify(task)}\n`)
  }

  /** Keeps that this key must never start: it was cancelled before it began. */
  refuse(key: TaskKey): void {
    replaceFile(this.#path(key, 'refused'), '')
  }

  isRefused(key: TaskKey): boolean {
    return existsSync(this.#path(key, 'refused'))
  }

  appendLog(key: TaskKey, line: TaskLogLine): void {
    appendFileSync(this.#path(key, 'log'), `${JSON.stringify(line)}\n`, { mode: 0o600 })
  }

  readLog(key: TaskKey): TaskLogLine[] {
    let text: string
    try {
      text = readFileSync(this.#path(key, 'log'), 'utf8')
    } catch {
      return []
    }
    return text.split('\n').flatMap((line) => {
      try {
        return [TaskLogLine.parse(JSON.parse(line))]
      } catch {
        // the line a kill cut off
        return []
      }
    })
  }

  /** What a task noted for a run of it after a kill; null when it has noted nothing. */
  readNote(key: TaskKey): unknown {
    try {
      return JSON.parse(readFileSync(this.#path(key, 'note'), 'utf8')) as unknown
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  /** Keeps a task's note durably; null drops it. */
  writeNote(key: TaskKey, note: unknown): void {
    if (note === null) rmSync(this.#path(key, 'note'), { force: true })
    else replaceFile(this.#path(key, 'note'), `${JSON.stringify(note)}\n`)
  }

  /** Tasks that had not ended when the agent did. */
  unended(): StoredTask[] {
    return this.#files()
      .flatMap((f) => this.#read(f) ?? [])
      .filter((t) => t.endedAt === null)
      .sort((a, b) => a.startedAt - b.startedAt)
  }

  /** Drops what ended long ago; answers how many tasks. */
  prune(now = Date.now()): number {
    const old = (path: string) => now - statSync(path).mtimeMs >= KEEP_MS
    for (const f of readdirSync(this.#directory).filter((name) => name.endsWith('.refused')))
      if (old(join(this.#directory, f))) rmSync(join(this.#directory, f))
    for (const path of this.unreadable()) if (old(path)) rmSync(path)
    let dropped = 0
    for (const f of this.#files()) {
      const path = join(this.#directory, f)
      if (!old(path)) continue
      const task = this.#read(f)
      if (!task || task.endedAt === null) continue
      rmSync(path)
      for (const beside of ['log', 'note']) rmSync(path.replace(/json$/, beside), { force: true })
      dropped++
    }
    return dropped
  }

  #files(): string[] {
    return readdirSync(this.#directory).filter((f) => f.endsWith('.json'))
  }

  #name(key: TaskKey): string {
    return `${key.operationId}.${encodeURIComponent(key.step)}.${key.attempt}`
  }

  #path(key: TaskKey, extension: string): string {
    return join(this.#directory, `${this.#name(key)}.${extension}`)
  }
}
