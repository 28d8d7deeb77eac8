import type { TaskInput, TaskKey, TaskStatus } from '@floe/agent-contract'
import { type BlockAddress, type Fault, fault } from '@floe/domain'
import { expect, test } from 'vitest'
import { type Carried, copyStep } from './copy-step'
import { PATIENCE } from './patience'

type Answer = Partial<TaskStatus> | (() => Partial<TaskStatus>)
const block: BlockAddress = { tablespace: 1663, database: 5, relation: 1, fork: 0, block: 7 }
const member = (name: string) => ({ name, hostId: `host-${name}`, hostName: name }) as never

/** Agents whose pieces end at once, unless told otherwise by the step of their key. */
function scene(answers: Record<string, Answer> = {}, more: Record<string, unknown> = {}) {
  const asked: string[] = []
  const agentOf = (hostId: string) => ({
    async startTask({ key, task }: { key: TaskKey; task: TaskInput }) {
      asked.push(`${hostId.slice(5)} ${key.step} ${task.kind}`)
      const answer = answers[key.step]
      const given = typeof answer === 'function' ? answer() : answer
      const result = task.kind === 'read-copies' ? { data: 'AAAA', crc32: 1, damaged: [] } : { bytes: 3 }
      return { state: 'succeeded', result, fault: null, ...given } as TaskStatus
    },
    async checkTask() {
      return { state: 'succeeded', result: { bytes: 3 } } as unknown as TaskStatus
    },
  })
  const carried: Carried = {
    to: member('b'),
    pieceBytes: [10, 10, 5],
    from: () => member('a'),
    read: (number) => ({ kind: 'read-copies', number }) as never,
    write: (number, sent) => ({ kind: 'write-copies', number, sent }) as never,
    first: { kind: 'write-copies', piece: { kind: 'begin', bytes: 25 } } as never,
    damaged: (blocks) => ({ code: 'recover.whole_nowhere', message: blocks.map((b) => b.block).join() }),
  }
  const run = (doneBytes: number | null = null, cancelAskedAt: Date | null = null) =>
    copyStep(async () => ({ ...carried, ...more })).run({
      operationId: 'o',
      step: { name: 'wal', attempt: 1, startedAt: new Date(), taskLogSeq: 0, doneBytes },
      cancelAskedAt,
      now: new Date(),
      atWorkSince: new Date(0),
      patience: PATIENCE,
      agentOf,
    } as never)
  return { asked, run }
}
const failing = (code: string): Answer => ({ state: 'failed', fault: { code, message: code } as Fault })

test('each piece is read on one host and written on the other, in order', async () => {
  const { asked, run } = scene()
  expect(await run()).toMatchObject({ word: 'next', result: { carriedBytes: 25 } })
  expect(asked).toEqual([
    'b wal.first write-copies',
    ...[0, 1, 2].flatMap((n) => [`a wal.read.${n} read-copies`, `b wal.write.${n} write-copies`]),
  ])
})

test('who takes over goes on where the one before said it was, and begins nothing anew', async () => {
  const { asked, run } = scene()
  expect(await run(20)).toMatchObject({ word: 'next', result: { carriedBytes: 25 } })
  expect(asked).toEqual(['a wal.read.2 read-copies', 'b wal.write.2 write-copies'])
  // killed before it could say that all is done
  expect(await scene().run(25)).toMatchObject({ word: 'next' })
})

test('pieces are of any size, and of any host', async () => {
  const { asked, run } = scene(
    {},
    { pieceBytes: [7, 1, 9], from: (number: number) => member(number === 1 ? 'c' : 'a') },
  )
  expect(await run(7)).toMatchObject({ word: 'next', result: { carriedBytes: 17 } })
  expect(asked).toEqual([
    'c wal.read.1 read-copies',
    'b wal.write.1 write-copies',
    'a wal.read.2 read-copies',
    'b wal.write.2 write-copies',
  ])
})

test('a first piece that was not written is begun with again, whoever takes over', async () => {
  const { run } = scene({ 'wal.first': { state: 'not-started', result: null } })
  expect(await run()).toMatchObject({ word: 'wait', work: null })
})

test('nothing to bring is done at once', async () => {
  const { asked, run } = scene({}, { pieceBytes: [], first: undefined })
  expect(await run()).toMatchObject({ word: 'next', result: { carriedBytes: 0 } })
  expect(asked).toEqual([])
})

test('blocks that are whole on neither host end it by their names, before one is written', async () => {
  const { asked, run } = scene({
    'wal.read.1': { result: { data: '', crc32: 0, damaged: [block] } },
  })
  expect(await run()).toMatchObject({ word: 'fail', fault: { code: 'recover.whole_nowhere', message: '7' } })
  expect(asked.at(-1)).toBe('a wal.read.1 read-copies')
})

test('an answer that is none of a read is no piece', async () => {
  const wrong = { result: { data: 'AAAA', crc32: -1, damaged: [] } }
  expect(await scene({ 'wal.read.0': wrong }).run()).toMatchObject({
    word: 'fail',
    fault: { code: 'agent.bad_result' },
  })
  const path = { result: { data: '', crc32: 0, damaged: ['/etc/shadow'] } }
  expect(await scene({ 'wal.read.0': path }).run()).toMatchObject({ word: 'fail' })
})

test('what was not done now is waited for, with what was done before; what never will be ends it', async () => {
  const waiting: [Answer, RegExp][] = [
    [{ state: 'not-started', result: null }, /again on host "b"/],
    [
      () => {
        throw fault('task.instance_busy', 'busy', { detail: 'another task' })
      },
      /another task/,
    ],
    [
      () => {
        throw fault('agent.unreachable', 'silent')
      },
      /host "b" does not answer/,
    ],
  ]
  for (const [answer, message] of waiting)
    expect(await scene({ 'wal.write.1': answer }).run()).toMatchObject({
      word: 'wait',
      message: expect.stringMatching(message),
      work: { doneBytes: 10, totalBytes: 25 },
    })
  expect(await scene({ 'wal.write.1': failing('recover.piece_refused') }).run()).toMatchObject({
    word: 'fail',
    fault: { code: 'recover.piece_refused' },
  })
  const older = () => {
    throw fault('agent.bad_request', 'invalid input')
  }
  expect(await scene({ 'wal.read.0': older }).run()).toMatchObject({
    word: 'fail',
    fault: { code: 'agent.older', message: expect.stringContaining('"a"') },
  })
})

test('a cancel is heard between two pieces', async () => {
  const { asked, run } = scene()
  expect(await run(10, new Date())).toMatchObject({ word: 'fail', fault: { code: 'task.cancelled' } })
  expect(asked).toEqual([])
})
