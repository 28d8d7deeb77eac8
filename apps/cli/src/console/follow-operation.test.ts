import { OperationId } from '@floe/domain'
import { expect, test } from 'vitest'
import type { ConsoleClient } from './client'
import {
  followOperation,
  formatEvent,
  type OperationDetail,
  OperationEvents,
  type OperationShown,
} from './follow-operation'

const operationId = OperationId.parse('0b0c2f34-9f4e-4d8e-8a43-5d8f0c7f2f10')
type Step = OperationDetail['steps'][number]

const step = (more: Partial<Step> = {}): Step => ({
  position: 0,
  name: 'clone',
  title: 'Copy the data',
  state: 'running',
  attempt: 1,
  startedAt: 150,
  endedAt: null,
  deadlineAt: null,
  progress: null,
  message: null,
  work: null,
  fault: null,
  ...more,
})

const operation = (more: Partial<OperationDetail> = {}) =>
  ({
    operationId,
    title: 'Create standby',
    state: 'running',
    instanceName: 'one-2',
    actorName: 'Ada',
    progress: 0.2,
    createdAt: 0,
    startedAt: 50,
    endedAt: null,
    fault: null,
    result: null,
    steps: [],
    ...more,
  }) as OperationDetail

const line = (id: number, text: string) => ({ id, at: id, step: null, text })

test('what begins and ends is told once, progress once a second, and the end last of all', () => {
  const events = new OperationEvents()
  const kinds = (o: Partial<OperationDetail>, now: number, ...log: string[]) =>
    events
      .next({ operation: operation(o), log: log.map((text, i) => line(now + i, text)) }, now)
      .map((e) => e.event)
  expect(kinds({ state: 'queued' }, 0)).toEqual(['operation'])
  expect(kinds({ steps: [step()] }, 100, 'running: a controller leased it')).toEqual([
    'operation',
    'log',
    'step',
  ])
  expect(kinds({ steps: [step()] }, 200)).toEqual([])
  expect(kinds({ steps: [step({ message: 'copying' })] }, 300)).toEqual(['progress'])
  expect(kinds({ steps: [step({ message: 'still copying' })] }, 900)).toEqual([])
  expect(kinds({ steps: [step({ message: 'still copying' })] }, 1_300)).toEqual(['progress'])
  expect(kinds({ steps: [step({ message: 'still copying' })] }, 9_000)).toEqual([])
  const done = { state: 'succeeded' as const, steps: [step({ state: 'succeeded', endedAt: 9_050 })] }
  expect(kinds(done, 9_100, 'succeeded: its last step is done')).toEqual(['step', 'log'])
  expect(kinds(done, 9_200)).toEqual(['ended'])
  expect(kinds(done, 9_300)).toEqual([])
})

test('what one look finds is told as it came about', () => {
  const steps = [step({ state: 'succeeded', endedAt: 300 }), step({ name: 'follow', startedAt: 310 })]
  const log = [line(100, 'one'), line(320, 'two')]
  const told = new OperationEvents().next({ operation: operation({ steps }), log }, 999)
  expect(told.map((e) => [e.event, e.at])).toEqual([
    ['operation', 50],
    ['log', 100],
    ['step', 300],
    ['step', 310],
    ['log', 320],
  ])
})

test('a step that is tried again is told again', () => {
  const events = new OperationEvents()
  const steps = (...of: Step[]) =>
    events.next({ operation: operation({ steps: of }), log: [] }, 0).filter((e) => e.event === 'step')
  expect(steps(step({ attempt: 1 }), step({ name: 'later', state: 'pending' }))).toHaveLength(1)
  expect(steps(step({ attempt: 2 }))).toMatchObject([{ step: { attempt: 2 } }])
})

test('words say how much of all is done, what a step works through, and how long it took', () => {
  expect(
    formatEvent({ event: 'step', at: 0, progress: 0.999, step: step({ attempt: 2 }) }, operation()),
  ).toBe(' 99 %  Copy the data (attempt 2): running')
  const ended = step({ state: 'succeeded', endedAt: 2_150 })
  expect(formatEvent({ event: 'step', at: 0, progress: 1, step: ended }, operation())).toBe(
    '100 %  Copy the data: succeeded after 2 s',
  )
  const work = { doneBytes: 1, totalBytes: 4, remainingMs: null }
  expect(
    formatEvent(
      { event: 'progress', at: 0, progress: null, step: step({ message: 'copying', work }) },
      operation(),
    ),
  ).toMatch(/^ {4}– {2}Copy the data: copying: 1 .* of 4 .*, 25 %$/)
  const steps = { steps: [step()] }
  expect(formatEvent({ event: 'log', ...line(1, 'copied') }, steps)).toBe('       copied')
  // the step itself is told already
  const begins = { event: 'log' as const, ...line(1, 'Copy the data'), step: 'clone' }
  expect(formatEvent(begins, steps)).toBeNull()
})

test('an operation is followed over a console that is away, with each log line once, until after its last one', async () => {
  const asked: number[] = []
  const shown = (state: OperationDetail['state'], ...log: ReturnType<typeof line>[]): OperationShown => ({
    operation: operation({ state }),
    log,
    now: 0,
  })
  const answers = [
    () => shown('running', line(1, 'one'), line(2, 'two')),
    () => {
      throw new Error('fetch failed')
    },
    () => shown('succeeded', line(3, 'three')),
    () => shown('succeeded'),
  ]
  const query = async ({ afterLogId }: { afterLogId: number }) => {
    asked.push(afterLogId)
    return answers.shift()?.()
  }
  const client = { trpc: { operation: { show: { query } } } } as unknown as ConsoleClient
  const lines: string[] = []
  for await (const { log } of followOperation(client, operationId)) lines.push(...log.map((l) => l.text))
  expect(lines).toEqual(['one', 'two', 'three'])
  expect(asked).toEqual([0, 2, 2, 3])
})

test('an operation that does not exist is said at once', async () => {
  const gone = Object.assign(new Error('no'), { data: { fault: { code: 'operation.not_found' } } })
  const client = {
    trpc: { operation: { show: { query: () => Promise.reject(gone) } } },
  } as unknown as ConsoleClient
  await expect(followOperation(client, operationId).next()).rejects.toBe(gone)
})
