import { setTimeout as delay } from 'node:timers/promises'
import {
  type TaskInput,
  type TaskKey,
  type TaskStartInput,
  type TaskStatus,
  taskManner,
} from '@floe/agent-contract'
import { FLASHBACK_READERS_MAX, fault, toFault } from '@floe/domain'
import type { Log } from '@floe/host/log'
import type { z } from 'zod'
import { isNoRoom, noRoom } from '../../host/no-room'
import type { Problems } from '../../problems'
import { Pace } from './pace'
import type { StoredTask, TaskStore } from './store'
import type { TaskBodies, TaskBody, TaskContext } from './task'

/** What tasks get of the agent. */
export type AgentParts = Omit<
  TaskContext,
  'operationId' | 'startedAt' | 'resumed' | 'signal' | 'log' | 'say' | 'progress' | 'worked' | 'note'
>

/** Of the tasks that are kept in memory only, so many that have ended can still be asked for. */
const IN_MEMORY_MAX = 8

/** The step of a task that no operation asked for: any that one does ask for displaces it. */
export const BY_ITSELF = 'start-by-itself'

type Running = {
  stored: StoredTask
  abort: AbortController
  progress: number | null
  message: string | null
  pace: Pace
  logSeq: number
  /** Its body has ended; only the end may still have to be stored. */
  ended: boolean
  done: Promise<void>
}

/** Runs tasks: each key once, one per instance at a time, and those that a killed agent left, again. */
export class TaskRunner {
  readonly #store: TaskStore
  readonly #bodies: TaskBodies
  readonly #log: Log
  readonly #context: AgentParts
  readonly #problems: Problems
  readonly #running = new Map<string, Running>()
  /** The newest of those that are kept in memory only, the oldest first. */
  readonly #unstored = new Map<string, StoredTask>()

  constructor(store: TaskStore, bodies: TaskBodies, context: AgentParts, log: Log, problems: Problems) {
    this.#store = store
    this.#bodies = bodies
    this.#context = context
    this.#log = log
    this.#problems = problems
  }

  /** Goes on with every task that had not ended. Call once, after the instances were adopted. */
  resume(): void {
    const unended = this.#store.unended()
    this.prune()
    for (const stored of unended) {
      this.#log.info('task.resumed', { ...stored.key, kind: stored.task.kind })
      this.#run(stored, 'the agent was restarted; going on', true)
    }
  }

  /** Drops what ended long ago, and reports files that could not be read as tasks for as long as they lie there. */
  prune(): void {
    try {
      const dropped = this.#store.prune()
      if (dropped > 0) this.#log.info('task.pruned', { dropped })
    } catch (error) {
      this.#log.error('task.not_pruned', { reason: String(error) })
    }
    const [first, ...more] = this.#store.unreadable()
    if (first === undefined) this.#problems.end('tasks-unreadable')
    else
      this.#problems.begin('tasks-unreadable', {
        code: 'agent.tasks_unreadable',
        message: 'a task could not be read and was put aside',
        detail: `It is in "${first}"${more.length > 0 ? `, with ${more.length} more` : ''}.`,
        hint: 'Find out what its operation was for, then remove the file.',
      })
  }

  get running(): number {
    return this.#running.size
  }

  start(input: z.output<typeof TaskStartInput>): TaskStatus {
    const known = this.#find(input.key)
    if (known) {
      if (JSON.stringify(known.task) !== JSON.stringify(input.task))
        throw fault('task.key_reused', 'a different task was started with this key', {
          detail: `It is a task "${known.task.kind}".`,
        })
      return this.check(input.key, 0)
    }
    if (this.#store.isRefused(input.key)) return this.check(input.key, 0)
    const beside = (task: TaskInput) => taskManner(task.kind).besideOthers === true
    const busy = [...this.#running.values()].find(
      (r) =>
        !r.ended &&
        r.stored.task.instanceId === input.task.instanceId &&
        !beside(r.stored.task) &&
        !beside(input.task),
    )
    this.#refuseReader(input.task)
    if (busy?.stored.key.step === BY_ITSELF && input.key.step !== BY_ITSELF) this.cancel(busy.stored.key)
    if (busy && !this.#escalates(input.task))
      throw fault('task.instance_busy', 'another task works on this instance', {
        detail: `It is task "${busy.stored.task.kind}", step "${busy.stored.key.step}" of operation ${busy.stored.key.operationId}.`,
        hint: 'Wait until it has ended, or cancel it.',
      })
    const stored: StoredTask = {
      version: 1,
      key: input.key,
      task: input.task,
      state: 'running',
      cancelAsked: false,
      result: null,
      fault: null,
      startedAt: Date.now(),
      endedAt: null,
    }
    if (taskManner(input.task.kind).inMemory) {
      this.#run(stored, null)
      return this.check(input.key, 0)
    }
    const kept = this.#keep(stored)
    this.#log.info('task.started', { ...input.key, kind: input.task.kind, instanceId: input.task.instanceId })
    this.#run(stored, kept ? null : 'there is no room to keep this task: it is begun all the same')
    return this.check(input.key, 0)
  }

  #find(key: TaskKey): StoredTask | null {
    return this.#running.get(idOf(key))?.stored ?? this.#unstored.get(idOf(key)) ?? this.#store.find(key)
  }

  /** A reader waits for others, where they are many. */
  #refuseReader(task: TaskInput): void {
    if (!taskManner(task.kind).readsTables) return
    const reading = [...this.#running.values()].filter(
      (r) =>
        !r.ended &&
        r.stored.task.instanceId === task.instanceId &&
        taskManner(r.stored.task.kind).readsTables,
    )
    if (reading.length >= FLASHBACK_READERS_MAX)
      throw fault('task.instance_busy', 'other tasks read from this instance', {
        detail: `${reading.length} compare tables.`,
        hint: 'Wait until one of them has ended, or cancel it.',
      })
  }

  /** A stop at once, of an instance that is being stopped: the one task that need not wait for another. */
  #escalates(task: TaskInput): boolean {
    if (task.kind !== 'stop-instance' || task.mode !== 'immediate') return false
    return this.#context.instances.find(task.instanceId)?.activity === 'stopping'
  }

  /** False when a full disk did not take it; throws where the task may not begin without. */
  #keep(stored: StoredTask): boolean {
    try {
      this.#store.put(stored)
      return true
    } catch (error) {
      if (!isNoRoom(error)) throw error
      if (!taskManner(stored.task.kind).makesRoom)
        throw noRoom('the task', this.#context.installation.stateDirectory, error)
      this.#log.error('task.not_stored', { ...stored.key, reason: String(error) })
      return false
    }
  }

  check(key: TaskKey, afterLogSeq: number): TaskStatus {
    const running = this.#running.get(idOf(key))
    const stored = this.#find(key)
    return {
      key,
      state: stored?.state ?? (this.#store.isRefused(key) ? 'cancelled' : 'not-started'),
      progress: stored?.state === 'succeeded' ? 1 : (running?.progress ?? null),
      message: running?.message ?? null,
      work: running?.pace.work(performance.now()) ?? null,
      log: stored ? this.#store.readLog(key).filter((l) => l.seq > afterLogSeq) : [],
      result: stored?.result ?? null,
      fault: stored?.fault ?? null,
      startedAt: stored?.startedAt ?? null,
      endedAt: stored?.endedAt ?? null,
    }
  }

  cancel(key: TaskKey): TaskStatus {
    const running = this.#running.get(idOf(key))
    if (running && !running.stored.cancelAsked) {
      running.stored = { ...running.stored, cancelAsked: true }
      try {
        if (!taskManner(running.stored.task.kind).inMemory) this.#store.put(running.stored)
      } catch (error) {
        // given up all the same; a run after a kill would have to be asked again
        this.#log.error('task.not_stored', { ...key, reason: String(error) })
      }
      this.#log.info('task.cancel_asked', key)
      running.abort.abort(cancelled())
    } else if (!running && !this.#find(key)) {
      // a start that is still on its way must not begin what was reported as cancelled
      this.#store.refuse(key)
      this.#log.info('task.refused', key)
    }
    return this.check(key, 0)
  }

  #run(stored: StoredTask, remark: string | null, resumed = false): void {
    const lines = this.#store.readLog(stored.key)
    const running: Running = {
      stored,
      abort: new AbortController(),
      progress: null,
      message: null,
      pace: new Pace(),
      logSeq: lines.at(-1)?.seq ?? 0,
      ended: false,
      done: Promise.resolve(),
    }
    this.#running.set(idOf(stored.key), running)
    if (stored.cancelAsked) running.abort.abort(cancelled())
    const say = (text: string) => {
      running.message = text
      if (taskManner(stored.task.kind).inMemory) return
      try {
        this.#store.appendLog(stored.key, { seq: ++running.logSeq, at: Date.now(), text })
      } catch (error) {
        // a full disk must not end the task, nor the agent
        this.#log.error('task.log_not_stored', { ...stored.key, text, reason: String(error) })
      }
    }
    if (remark) say(remark)
    running.done = this.#carryOut(running, say, resumed)
  }

  async #carryOut(running: Running, say: (text: string) => void, resumed: boolean): Promise<void> {
    const { task, key } = running.stored
    const body = this.#bodies[task.kind] as TaskBody<TaskInput['kind']>
    let end: Pick<StoredTask, 'state' | 'result' | 'fault'>
    try {
      const result = await body(task, {
        ...this.#context,
        operationId: key.operationId,
        startedAt: running.stored.startedAt,
        resumed,
        signal: running.abort.signal,
        log: say,
        say: (text) => {
          running.message = text
        },
        progress: (fraction) => {
          running.progress = fraction
        },
        worked: (doneBytes, totalBytes) => {
          running.pace.see(doneBytes, totalBytes, performance.now())
          running.progress = totalBytes ? Math.min(1, doneBytes / totalBytes) : null
        },
        note: {
          read: () => this.#store.readNote(key),
          write: (note) => this.#store.writeNote(key, note),
        },
      })
      end = { state: 'succeeded', result, fault: null }
    } catch (error) {
      const given = running.abort.signal.aborted && error === running.abort.signal.reason
      const { instancesDirectory } = this.#context.installation
      const f = toFault(isNoRoom(error) ? noRoom('what the task writes', instancesDirectory, error) : error)
      end = given
        ? { state: 'cancelled', result: null, fault: null }
        : { state: 'failed', result: null, fault: f }
      say(given ? 'given up' : [f.message, f.detail].filter(Boolean).join(': '))
      if (!given && f.code === 'internal')
        this.#log.error('task.broke', { ...key, stack: error instanceof Error ? error.stack : String(error) })
    }
    running.stored = { ...running.stored, ...end, endedAt: Date.now() }
    running.ended = true
    if (taskManner(task.kind).inMemory) return this.#keepInMemory(running.stored)
    await this.#keepEnd(running)
    this.#log.info('task.ended', { ...key, kind: task.kind, state: end.state, fault: end.fault?.code })
    this.#running.delete(idOf(key))
  }

  #keepInMemory(stored: StoredTask): void {
    this.#unstored.set(idOf(stored.key), stored)
    for (const oldest of this.#unstored.keys()) {
      if (this.#unstored.size <= IN_MEMORY_MAX) break
      this.#unstored.delete(oldest)
    }
    this.#running.delete(idOf(stored.key))
  }

  /** Stores the end of a task; on a full disk it is answered from memory until there is room, and runs again if the agent is killed before. */
  async #keepEnd(running: Running): Promise<void> {
    for (;;) {
      try {
        this.#store.put(running.stored)
        return
      } catch (error) {
        this.#log.error('task.not_stored', { ...running.stored.key, reason: String(error) })
        await delay(1_000, undefined, { ref: false })
      }
    }
  }
}

const idOf = (key: TaskKey) => `${key.operationId}/${key.step}/${key.attempt}`
const cancelled = () => fault('task.cancelled', 'the task was cancelled')
