import { startTestEngine, type TestEngine } from '@floe/db/testing'
import { TRPCError } from '@trpc/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isDatabaseReachable } from './database-check'
import { faultOf } from './faults'
import { type ThrowawayConsole, throwawayConsole } from './testing/throwaway-console'

let engine: TestEngine
let it: ThrowawayConsole
beforeAll(async () => {
  engine = await startTestEngine()
  it = await throwawayConsole({ engine: engine.connectionString })
})
afterAll(async () => {
  await it.close()
  await engine.remove()
})

const refusal = (asked: Promise<unknown>) =>
  asked.then(
    () => null,
    (e: unknown) => (e instanceof TRPCError ? { code: e.code, fault: faultOf(e).code } : e),
  )

test('while the control database is away everyone is told so, and all goes on once it is back', async () => {
  const { headers } = await it.signedIn('operator')
  const token = await it.token()
  const before = await it.callerOf(headers)
  await engine.stop()
  const away = { code: 'SERVICE_UNAVAILABLE', fault: 'database.unreachable' }
  expect(await refusal(it.callerOf(headers))).toEqual(away)
  expect(await refusal(it.callerOf(token))).toEqual(away)
  expect(await refusal(before.host.list())).toMatchObject({ fault: 'database.unreachable' })
  expect(await isDatabaseReachable(it.ports)).toBe(false)
  await engine.start()
  expect(await isDatabaseReachable(it.ports)).toBe(true)
  expect(await (await it.callerOf(headers)).account.me()).toMatchObject({ role: 'operator' })
  expect((await (await it.callerOf(token)).host.list()).hosts).toEqual([])
})
