import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FaultError } from '@floe/domain'
import { afterEach, expect, test } from 'vitest'
import { createClientOf } from './client'
import { CONSOLE_TOKEN, CONSOLE_URL, consoleElsewhere } from './elsewhere'

const token = 'floe-0123456789abcdef'
const at = (url?: string, secret: string | undefined = token) =>
  consoleElsewhere({ [CONSOLE_URL]: url, [CONSOLE_TOKEN]: secret })
const refusal = (ask: () => unknown) => {
  try {
    ask()
  } catch (error) {
    return (error as FaultError).message
  }
  return null
}

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})
async function serving(answer: (asked: { url: string; authorization: string }) => [number, object, string?]) {
  const asked: { url: string; authorization: string }[] = []
  const server = createServer((request, response) => {
    const one = { url: request.url ?? '', authorization: request.headers.authorization ?? '' }
    asked.push(one)
    const [status, body, location] = answer(one)
    response.writeHead(status, { 'content-type': 'application/json', ...(location ? { location } : {}) })
    response.end(JSON.stringify(body))
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { asked, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

test('a console elsewhere is named by both variables; a token goes nowhere without TLS but on this machine', () => {
  expect(consoleElsewhere({})).toBeNull()
  expect(at('https://floe.example.org/instances')).toMatchObject({
    origin: 'https://floe.example.org',
    token,
  })
  for (const url of ['http://127.0.0.1:3000', 'http://localhost:3000', 'http://[::1]:3000'])
    expect(at(url)).toMatchObject({ origin: url })
  for (const url of [
    'http://10.0.0.1:3000',
    'http://localhost.example.org',
    'http://127.0.0.1.example.org',
    'ftp://127.0.0.1',
  ])
    expect([url, refusal(() => at(url))]).toEqual([url, expect.stringContaining('without TLS')])
  expect(refusal(() => at('floe.example.org'))).toContain('is not the address of a console')
  expect(refusal(() => consoleElsewhere({ [CONSOLE_URL]: 'https://a.example' }))).toContain('only one of')
  expect(refusal(() => consoleElsewhere({ [CONSOLE_TOKEN]: token }))).toContain('only one of')
  expect(refusal(() => at('https://a.example', 'a token\nwith: more'))).toContain(
    'does not hold an API token',
  )
})

test('it is asked with the token, and an address that redirects is not followed', async () => {
  const there = await serving(() => [200, [{ result: { data: { json: { hosts: [] } } } }]])
  const client = createClientOf(at(there.origin) as NonNullable<ReturnType<typeof at>>)
  expect(await client.trpc.host.list.query()).toEqual({ hosts: [] })
  expect(there.asked).toMatchObject([{ authorization: `Bearer ${token}` }])
  const elsewhere = await serving(() => [307, {}, there.origin])
  const astray = createClientOf(at(elsewhere.origin) as NonNullable<ReturnType<typeof at>>)
  await expect(astray.trpc.host.list.query()).rejects.toThrow()
  expect(there.asked).toHaveLength(1)
})
