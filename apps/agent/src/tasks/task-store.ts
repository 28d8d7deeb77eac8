import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { TaskInput, TaskKey, TaskLogLine, TaskState } from '@floe/agent-contract'
import { Fault } from '@floe/domain'
import { z } from 'zod'
import { replaceFile } from '../host/durable-files'

/** A task as it is kept. It is written before anything is done and before anybody is told of its end. */
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

/** Tasks in files, one each, with their log lines in a file beside. */
export class TaskStore {
  readonly #directory: string

  constructor(stateDirectory: string) {
    this.#directory = join(stateDirectory, 'tasks')
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
  }

  find(key: TaskKey): StoredTask | null {
    let text: string
    try {
      text = readFileSync(this.#path(key, 'json'), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
    return StoredTask.parse(JSON.parse(text))
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

  /** Tasks that had not ended when the agent did. */
  unended(): StoredTask[] {
    return this.#files()
      .map((f) => StoredTask.parse(JSON.parse(readFileSync(join(this.#directory, f), 'utf8'))))
      .filter((t) => t.endedAt === null)
      .sort((a, b) => a.startedAt - b.startedAt)
  }

  /** Drops what ended long ago. */
  prune(now = Date.now()): void {
    for (const f of readdirSync(this.#directory).filter((name) => name.endsWith('.refused')))
      if (now - statSync(join(this.#directory, f)).mtimeMs >= KEEP_MS) rmSync(join(this.#directory, f))
    for (const f of this.#files()) {
      const path = join(this.#directory, f)
      if (now - statSync(path).mtimeMs < KEEP_MS) continue
      const task = StoredTask.safeParse(JSON.parse(readFileSync(path, 'utf8')))
      if (!task.success || task.data.endedAt === null) continue
      rmSync(path)
      rmSync(path.replace(/json$/, 'log'), { force: true })
    }
  }

  #files(): string[] {
    return readdirSync(this.#directory).filter((f) => f.endsWith('.json'))
  }

  #path(key: TaskKey, extension: string): string {
    return join(
      this.#directory,
      `${key.operationId}.${encodeURIComponent(key.step)}.${key.attempt}.${extension}`,
    )
  }
}
