import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { GET } from '../app/healthz/route'
import { type ThrowawayConsole, throwawayConsole } from './testing/throwaway-console'

const held = globalThis as unknown as { floePorts?: ThrowawayConsole['ports'] | undefined }
let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
  held.floePorts = it.ports
})
afterAll(async () => {
  held.floePorts = undefined
  await it.close()
})

const answer = async (headers: Record<string, string> = {}) => {
  const response = await GET(new Request(`${it.webUrl}/healthz`, { headers }))
  return { status: response.status, body: await response.json() }
}

test('a stranger hears that the console serves, and nothing of what it watches', async () => {
  expect(await answer()).toEqual({ status: 200, body: { ok: true } })
  expect(await answer({ cookie: 'floe.session_token=forged' })).toEqual({ status: 200, body: { ok: true } })
  const { cookie } = await it.signedIn('viewer')
  expect(await answer({ cookie })).toEqual({ status: 200, body: { ok: true, liveInstances: 0 } })
})
