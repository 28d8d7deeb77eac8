import { endedOperationStates, type Fault, fault, type OperationId, stepWorkWords } from '@floe/domain'
import { pause } from '@floe/host/wait'
import type { RouterOutputs } from '@floe/web/api'
import { duration, percent } from '../output'
import type { ConsoleClient } from './client'

export type OperationShown = RouterOutputs['operation']['show']
export type OperationDetail = OperationShown['operation']
type LogLine = OperationShown['log'][number]
type Step = OperationDetail['steps'][number]

const LOOK_MS = 100
/** Steps have deadlines of their own; this only bounds a console or controller that is gone. */
const SILENCE_MS = 120_000
/** Bytes and remaining times are reported this often; what begins and ends is reported at once. */
const PROGRESS_MS = 1_000

/**
 * An operation again and again until it has ended, each time with the log lines that were not answered before; the last
 * time with its last lines. A console that is being restarted meanwhile is waited for. Throws `operation.not_ended` after
 * `deadlineMs`.
 */
export async function* followOperation(
  { trpc }: ConsoleClient,
  operationId: OperationId,
  { deadlineMs = Number.POSITIVE_INFINITY }: { deadlineMs?: number } = {},
): AsyncGenerator<{ operation: OperationDetail; log: LogLine[] }> {
  let answered = Date.now()
  let afterLogId = 0
  const end = answered + deadlineMs
  for (;;) {
    let shown: OperationShown | undefined
    try {
      shown = await trpc.operation.show.query({ operationId, afterLogId })
      answered = Date.now()
    } catch (error) {
      const { fault: why } = (error as { data?: { fault?: Fault } }).data ?? {}
      if (why?.code === 'operation.not_found' || Date.now() - answered > SILENCE_MS) throw error
    }
    if (shown !== undefined) {
      const { operation, log } = shown
      afterLogId = log.at(-1)?.id ?? afterLogId
      yield { operation, log }
      // its last log lines may be written just after its end
      if (endedOperationStates.includes(operation.state) && log.length === 0) return
    }
    if (Date.now() > end)
      throw fault('operation.not_ended', 'the operation has not ended in time', {
        hint: `Look at it with "./floe operation show ${operationId}".`,
      })
    await pause(LOOK_MS)
  }
}

/** What a person, or a program, reads of an operation as it moves. Moments are ms since the epoch, progress is 0 to 1. */
export type OperationEvent =
  | { event: 'operation'; at: number; operation: Omit<OperationDetail, 'steps' | 'input'> }
  | { event: 'step'; at: number; progress: number | null; step: Step }
  | {
      event: 'progress'
      at: number
      progress: number | null
      step: Pick<Step, 'name' | 'title' | 'progress' | 'message' | 'work'>
    }
  | ({ event: 'log' } & LogLine)
  | {
      event: 'ended'
      at: number
      state: OperationDetail['state']
      fault: Fault | null
      result: OperationDetail['result']
    }

/** Turns what is seen of an operation into events, each reported once: what began or ended at once, progress now and then. */
export class OperationEvents {
  #state: string | null = null
  #ended = false
  readonly #steps = new Map<string, string>()
  #progress = ''
  #progressAt = Number.NEGATIVE_INFINITY

  next({ operation, log }: { operation: OperationDetail; log: LogLine[] }, now: number): OperationEvent[] {
    const events: OperationEvent[] = []
    const moved = operation.state !== this.#state
    const ended = endedOperationStates.includes(operation.state)
    this.#state = operation.state
    if (moved && !ended) {
      const { steps: _steps, input: _input, ...rest } = operation
      events.push({ event: 'operation', at: operation.startedAt ?? operation.createdAt, operation: rest })
    }
    for (const line of log) events.push({ event: 'log', ...line })
    for (const step of operation.steps) {
      const mark = `${step.state} ${step.attempt}`
      if (step.state === 'pending' || this.#steps.get(step.name) === mark) continue
      this.#steps.set(step.name, mark)
      const at = step.endedAt ?? step.startedAt ?? now
      events.push({ event: 'step', at, progress: operation.progress, step })
    }
    // as it came about, where one look finds several
    events.sort((a, b) => a.at - b.at)
    const step = operation.steps.find((s) => s.state === 'running')
    if (step) {
      const { name, title, progress, message, work } = step
      const mark = JSON.stringify([name, progress, message, work])
      const due = now - this.#progressAt >= PROGRESS_MS
      if (mark !== this.#progress && due && (message !== null || work !== null)) {
        this.#progress = mark
        this.#progressAt = now
        const told = { name, title, progress, message, work }
        events.push({ event: 'progress', at: now, progress: operation.progress, step: told })
      }
    }
    // the last of all: log lines may come after the state
    if (ended && log.length === 0 && !this.#ended) {
      this.#ended = true
      const { state, fault: why, result } = operation
      events.push({ event: 'ended', at: operation.endedAt ?? now, state, fault: why, result })
    }
    return events
  }
}

/** An event of an operation as a line for people; null where another line says the same. */
export function formatEvent(told: OperationEvent, { steps }: Pick<OperationDetail, 'steps'>): string | null {
  switch (told.event) {
    case 'operation': {
      const { title, instanceName, state, actorName } = told.operation
      return `${title}${instanceName ? ` "${instanceName}"` : ''}: ${state}, asked by ${actorName}`
    }
    case 'step': {
      const { title, state, attempt, startedAt, endedAt } = told.step
      const took = startedAt !== null && endedAt !== null ? ` after ${duration(endedAt - startedAt)}` : ''
      const again = attempt > 1 ? ` (attempt ${attempt})` : ''
      return `${percent(told.progress).padStart(5)}  ${title}${again}: ${state}${took}`
    }
    case 'progress': {
      const { title, message, work } = told.step
      const words = [title, message, work && stepWorkWords(work)].filter(Boolean).join(': ')
      return `${percent(told.progress).padStart(5)}  ${words}`
    }
    case 'log':
      // the log's way to say that a step begins
      if (steps.some((s) => s.name === told.step && s.title === told.text)) return null
      return `${' '.repeat(7)}${told.text}`
    case 'ended':
      return told.state === 'succeeded' ? 'It succeeded.' : null
  }
}
