import { randomUUID } from 'node:crypto'
import { insertTestInstance } from '@floe/db/testing'
import { InstanceId, OperationId } from '@floe/domain'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole, untracked } from '../../testing/throwaway-console'

let it: ThrowawayConsole
let headers: Record<string, string>
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
  headers = await it.token()
})
afterAll(() => it.close())

const say = (operationId: string, text: string) =>
  it.database.pool.query(`INSERT INTO operation_log ("operationId", text) VALUES ($1, $2)`, [
    operationId,
    text,
  ])

test('a watched operation is told as it moves, every log line once, until its end; also over a reconnect', async () => {
  const { instanceId } = await insertTestInstance(it.database)
  const caller = await it.callerOf(headers)
  const { operationId } = await caller.instance.reload({ instanceId: InstanceId.parse(instanceId) })
  await say(operationId, 'one')
  const lines: string[] = []
  let lastEventId = ''
  for await (const event of await caller.operation.watch({ operationId })) {
    const [id, show] = untracked(event)
    lastEventId = id
    lines.push(...show.log.map((l) => l.text))
    if (lines.length === 1) {
      // the controller's part
      await it.database.pool.query(
        `UPDATE operation SET state = 'running', "startedAt" = now() WHERE id = $1`,
        [operationId],
      )
      await say(operationId, 'two')
    }
    if (lines.includes('two')) break
  }
  await say(operationId, 'three')
  await it.database.pool.query(`UPDATE operation SET state = 'succeeded', "endedAt" = now() WHERE id = $1`, [
    operationId,
  ])
  let last: string | undefined
  for await (const event of await caller.operation.watch({ operationId, lastEventId })) {
    const [, show] = untracked(event)
    lines.push(...show.log.map((l) => l.text))
    last = show.operation.state
  }
  expect(lines).toEqual(['one', 'two', 'three'])
  expect(last).toBe('succeeded')
})

test('watching an operation that does not exist is refused', async () => {
  const caller = await it.callerOf(headers)
  const watching = async () => {
    for await (const _ of await caller.operation.watch({ operationId: OperationId.parse(randomUUID()) }))
      return
  }
  await expect(watching()).rejects.toThrow('does not exist')
})
