import { randomUUID } from 'node:crypto'
import { markInstanceDeleted, showInstance } from '@floe/db'
import { insertTestInstance } from '@floe/db/testing'
import type {} from '@floe/db/testing/engine-for-suite'
import type { HostId, InstanceName } from '@floe/domain'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { throwawayConsole } from '../../testing/throwaway-console'

let made: Awaited<ReturnType<typeof throwawayConsole>>
let hostId: HostId
let headers: Record<string, string>
beforeAll(async () => {
  made = await throwawayConsole({ engine: inject('engineConnectionString') })
  hostId = (await insertTestInstance(made.database)).hostId as HostId
  headers = (await made.signedIn('operator')).headers
})
afterAll(() => made.close())

const instanceId = randomUUID()
const seen = {
  instanceId,
  name: 'found',
  state: 'running',
  role: 'primary',
  port: 20_001,
  systemIdentifier: '42',
  fenced: null,
  primaryKnown: { instanceId, timeline: 1, at: 0 },
  standbySignal: false,
}

/** Orders the adoption of what the host's agent reports so; answers the fault's code, or none. */
async function adopt(
  instances: object[],
  asked: { instance?: string; name?: string; idempotencyKey?: string } = {},
) {
  vi.spyOn(made.ports.agents, 'probeHost').mockImplementation(async (_hostId, ask) =>
    ask({ report: { read: { query: async () => ({ instances }) } } } as never),
  )
  const caller = await made.callerOf(headers)
  return caller.instance
    .adoptReported({ hostId, instance: 'found', ...(asked as { name?: InstanceName }) })
    .then(
      () => 'none',
      (error) => error.cause?.fault?.code ?? String(error),
    )
}

test.each([
  ['what no agent reports', [], 'instance.not_reported'],
  ['a standby that runs', [{ ...seen, role: 'standby' }], 'instance.is_standby'],
  [
    'one that starts as a standby',
    [{ ...seen, role: null, state: 'stopped', standbySignal: true }],
    'instance.is_standby',
  ],
  [
    'one whose agent was told of another primary',
    [{ ...seen, primaryKnown: { instanceId: randomUUID(), timeline: 1, at: 0 } }],
    'instance.is_standby',
  ],
  ['one that is fenced', [{ ...seen, fenced: { at: 0, reason: 'another took over' } }], 'instance.fenced'],
  [
    'one that is down, of an agent that does not say what it is',
    [{ ...seen, role: null, state: 'stopped', standbySignal: undefined }],
    'agent.older',
  ],
  ['one that is being made', [{ ...seen, state: 'creating' }], 'instance.not_reported'],
  ['one of which it is not known what it is', [{ ...seen, systemIdentifier: null }], 'instance.not_reported'],
])('%s is refused, and no row is made', async (_what, instances, code) => {
  expect(await adopt(instances)).toBe(code)
  expect(await showInstance(made.database.pool, instanceId)).toBeUndefined()
})

test('what fits is ordered by name or id, under a name that is free; what has, or had, a row is refused', async () => {
  const { name: taken } = await insertTestInstance(made.database, { hostId })
  expect(await adopt([seen], { name: taken })).toBe('instance.name_taken')
  expect(await adopt([seen, { ...seen, instanceId: randomUUID(), name: 'there' }], { name: 'there' })).toBe(
    'instance.name_taken',
  )
  const asked = { instance: instanceId, name: 'free', idempotencyKey: randomUUID() }
  expect(await adopt([seen], asked)).toBe('none')
  // sent again it is the same operation; with the same key nothing else is
  expect(await adopt([seen], asked)).toBe('none')
  expect(await adopt([seen], { ...asked, instance: 'other' })).toBe('operation.key_reused')
  expect(await adopt([seen], { ...asked, name: 'else' })).toBe('operation.key_reused')
  expect(await showInstance(made.database.pool, instanceId)).toMatchObject({
    name: 'free',
    intent: 'running',
    operation: { kind: 'adopt-instance', state: 'queued' },
  })
  expect(await adopt([seen])).toBe('instance.exists')
  await markInstanceDeleted(made.database.pool, instanceId)
  expect(await adopt([seen])).toBe('instance.was_deleted')
})
