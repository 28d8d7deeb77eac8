import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { AgentHandlers } from '@floe/agent-contract'
import { CALLS_AT_ONCE_MAX, fault } from '@floe/domain'
import { createLog } from '@floe/host/log'
import { makeTestAuthority, makeThrowawayHome, type ThrowawayHome } from '@floe/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { AgentIdentity } from '../identity'
import { readInstallation } from '../installation'
import { limits, listen, type Outlets } from './listen'

let home: ThrowawayHome
let close: (() => Promise<void>) | undefined
beforeEach(async () => {
  home = await makeThrowawayHome({ enginePrefix: '/nowhere' })
})
afterEach(async () => {
  await close?.()
  close = undefined
  home.remove()
})

async function serve(
  changed: Partial<typeof limits> = {},
  handlers = {} as AgentHandlers,
  log = createLog(),
) {
  const installation = readInstallation(home.home)
  const outlets: Outlets = {
    handlers,
    metrics: async () => '# EOF\n',
    health: () => ({ ok: true, instances: 3, startedAt: 1, problems: ['host.clock_wrong'] }),
  }
  close = await listen(installation, new AgentIdentity(installation), outlets, log, {
    ...limits,
    ...changed,
  })
}

/** What a peer is told until the connection ends. */
function watch<S extends Socket>(socket: S) {
  const it = { socket, said: '', closed: new Promise((resolve) => socket.once('close', resolve)) }
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => {
    it.said += chunk
  })
  return it
}
const where = () => ({ host: '127.0.0.1', port: home.installation.agentPort })
const tcp = () => watch(connectTcp(where()))
async function tls(identity?: string) {
  const socket = connectTls({
    ...where(),
    ca: home.authority.certificate,
    cert: identity,
    key: identity,
    servername: 'localhost',
  })
  await once(socket, 'secureConnect')
  return watch(socket)
}
async function ask(path: string, identity?: string) {
  const it = await tls(identity)
  it.socket.write(`GET ${path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n`)
  await it.closed
  return it.said
}

test('a connection without a handshake, a slow head and a slow body are ended', async () => {
  await serve({ handshakeMs: 200, headMs: 200, requestMs: 400, lookEveryMs: 50 })
  const mute = tcp()
  const slowHead = await tls()
  slowHead.socket.write('GET /healthz HTTP/1.1\r\nHost: ')
  const slowBody = await tls(home.identities.task)
  slowBody.socket.write('POST /trpc/task.start HTTP/1.1\r\nHost: agent\r\nContent-Type: application/json\r\n')
  slowBody.socket.write('Content-Length: 100\r\n\r\n')
  const dripping = setInterval(() => slowBody.socket.write('x'), 50)
  await Promise.all([mute.closed, slowHead.closed, slowBody.closed])
  clearInterval(dripping)
  expect(slowBody.said).toMatch(/^HTTP\/1.1 408/)
  expect(limits.requestMs + limits.lookEveryMs).toBeLessThanOrEqual(30_000)
})

/** The status of an answer to a POST of a body by somebody with the right to start tasks, or to none. */
async function post(path: string, o: { type?: string; body: string; length?: number; identity?: string }) {
  const it = await tls(o.identity)
  it.socket.write(`POST ${path} HTTP/1.1\r\nHost: agent\r\nContent-Type: ${o.type ?? 'application/json'}\r\n`)
  it.socket.write(
    o.length === undefined
      ? `Transfer-Encoding: chunked\r\n\r\n${Buffer.byteLength(o.body).toString(16)}\r\n${o.body}\r\n`
      : `Content-Length: ${o.length}\r\n\r\n${o.body}`,
  )
  await expect.poll(() => it.said, { timeout: 10_000 }).toContain('\r\n\r\n')
  it.socket.destroy()
  return Number(it.said.split(' ')[1])
}

test('a body has a bound, told or not, and is JSON', async () => {
  await serve({ bodyBytes: 1_000 })
  const identity = home.identities.task
  const call = '/trpc/task.cancel'
  expect(await post(call, { identity, body: '{}', length: 1_001 })).toBe(413)
  expect(await post(call, { identity, body: 'x'.repeat(1_001) })).toBe(413)
  expect(await post(call, { identity, body: 'x', length: 1 })).toBe(400)
  for (const type of ['multipart/form-data', 'application/octet-stream', 'text/plain', 'application/jsonx'])
    expect(await post(call, { identity, type, body: '{}', length: 2 })).toBe(415)
})

test('nothing of a request without a certificate is read but its head', async () => {
  await serve()
  // the answer comes though the body never does
  expect(await post('/trpc/task.cancel', { body: '', length: 1_000 })).toBe(401)
  for (const path of ['/metrics', '/nowhere', '/healthz?all', '/trpc', '/'])
    expect(await ask(path)).toMatch(/^HTTP\/1.1 401 .*agent.no_certificate/s)
  expect(await ask('/trpc/hello')).toMatch(/^HTTP\/1.1 401 .*agent.no_certificate/s)
  for (const path of ['/nowhere', '/trpc', '/trpc/', '/trpc/a/b', '/', '//healthz', '/trpc/%zz'])
    expect(await ask(path, home.identities.task)).toMatch(/^HTTP\/1.1 40[04] /)
  expect(await ask('/metrics', home.identities.read)).toMatch(/^HTTP\/1.1 200 .*# EOF\n$/s)
})

test('a handler that fails is answered and logged, and serving goes on', async () => {
  const errors: string[] = []
  const log = { ...createLog(), error: (event: string) => void errors.push(event) }
  await serve({}, { hello: () => Promise.reject(new Error('broken')) } as unknown as AgentHandlers, log)
  expect(await ask('/trpc/hello', home.identities.read)).toMatch(/^HTTP\/1.1 500 .*"internal"/s)
  expect(errors).toEqual(['call.failed'])
  expect(await ask('/healthz')).toContain('{"ok":true}')
})

test('the end of serving waits for nobody', async () => {
  await serve()
  const mute = tcp()
  await once(mute.socket, 'connect')
  const kept = await tls(home.identities.read)
  await close?.()
  await Promise.all([mute.closed, kept.closed])
})

test('connections of one address have a bound', async () => {
  await serve({ connectionsOfThisMachine: 3 })
  const all = Array.from({ length: 8 }, tcp)
  await expect.poll(() => all.filter((it) => it.socket.closed).length).toBe(5)
  for (const it of all) it.socket.destroy()
  await Promise.all(all.map((it) => it.closed))
  await expect.poll(() => ask('/healthz').catch(() => '')).toContain('{"ok":true}')
})

test('a batch has a bound', async () => {
  await serve()
  const batch = (calls: number) =>
    ask(`/trpc/${Array(calls).fill('none').join(',')}?batch=1&input=%7B%7D`, home.identities.read)
  expect(await batch(CALLS_AT_ONCE_MAX)).not.toContain('exceeds maximum size')
  expect(await batch(CALLS_AT_ONCE_MAX + 1)).toMatch(/^HTTP\/1.1 400 .*exceeds maximum size/s)
})

test('who has no certificate hears that the agent serves, and nothing of its host', async () => {
  await serve()
  expect(await ask('/healthz')).toMatch(/\r\n\r\n\{"ok":true\}$/)
  expect(await ask('/healthz', home.identities.read)).toContain('"problems":["host.clock_wrong"]')
})

test('a certificate that is not good at the agent’s time is refused with the clock as the reason', async () => {
  await serve()
  const HOUR_MS = 3_600_000
  const at = (now: number) => home.authority.console('read', { lifetimeMs: HOUR_MS, now })
  expect(await ask('/metrics', await at(Date.now() - 20 * 24 * HOUR_MS))).toMatch(
    /^HTTP\/1.1 401 .*client certificate has expired by the clock of the host.*The clock of the host says 2/s,
  )
  expect(await ask('/trpc/hello', await at(Date.now() + 20 * 24 * HOUR_MS))).toMatch(
    /^HTTP\/1.1 401 .*client certificate is not valid yet by the clock of the host/s,
  )
  // another authority's is no matter of time
  const stranger = await (await makeTestAuthority()).console('read', { now: 0 })
  expect(await ask('/metrics', stranger)).toContain('client certificate missing or not accepted')
})

test('a stream of an instance that is gone is refused in words and leaves no error in the log', async () => {
  const errors: string[] = []
  const log = { ...createLog(), error: (event: string) => void errors.push(event) }
  const gone = { streamTelemetry: () => refuse() } as unknown as AgentHandlers
  const refuse = (): never => {
    throw fault('instance.not_found', 'instance "x" does not exist on this host')
  }
  await serve({}, gone, log)
  const input = encodeURIComponent(JSON.stringify({ json: { instanceId: randomUUID(), lastEventId: '1' } }))
  const reader = await tls(home.identities.read)
  reader.socket.write(`GET /trpc/telemetry.stream?input=${input} HTTP/1.1\r\nHost: agent\r\n\r\n`)
  await expect.poll(() => reader.said, { timeout: 10_000 }).toContain('instance.not_found')
  reader.socket.destroy()
  expect(errors).toEqual([])
})
