import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { CALLS_AT_ONCE_MAX } from '@floe/domain'
import { afterEach, expect, test } from 'vitest'
import { GET, POST } from '../app/api/trpc/[trpc]/route'

const MB = 1024 * 1024
let running: ChildProcess[] = []
afterEach(async () => {
  for (const child of running) {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  running = []
})

/** A server within its limits, in a process of its own; what answers keeps the whole body, as a form's parser does. */
async function serve(changed: Record<string, number> = {}) {
  const program = `
    import { createBoundedServer, limits } from ${JSON.stringify(join(import.meta.dirname, '../../limits.mjs'))}
    const server = createBoundedServer(async (request, response) => {
      if (request.url === '/unread') return response.writeHead(401).end('who are you')
      if (request.url === '/stream') return response.writeHead(200).write('first')
      if (request.url === '/slow') return
      const body = []
      for await (const chunk of request) {
        body.push(chunk)
        if (request.url === '/api/trpc/told') response.write(Buffer.concat(body).length + ' ')
      }
      response.end(String(Buffer.concat(body).length))
    }, { ...limits, ...${JSON.stringify(changed)} })
    process.on('unhandledRejection', () => undefined)
    server.listen(0, '127.0.0.1', () => console.log(server.address().port))`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program])
  running.push(child)
  const [said] = await once(child.stdout, 'data')
  const pid = child.pid as number
  return { port: Number(said), residentBytes: () => residentBytes(pid) }
}

function residentBytes(pid: number): number {
  const kB = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kB) * 1024
}

// an end by error is an end: events.once() would throw it
const gone = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve))

/** What a peer is told until the connection ends; `said` is all of it so far. */
function open(port: number) {
  const socket = connect({ host: '127.0.0.1', port })
  const it = { socket, said: '', closed: gone(socket), isOpen: () => !socket.closed }
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => {
    it.said += chunk
  })
  return it
}

const head = (path: string, ...lines: string[]) =>
  `${[`POST ${path} HTTP/1.1`, 'Host: floe', ...lines].join('\r\n')}\r\n\r\n`

/** Sends chunks until so much was sent or the other side has gone. */
async function pour({ socket, closed, isOpen }: ReturnType<typeof open>, bytes: number) {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const framed = Buffer.concat([Buffer.from('10000\r\n'), chunk, Buffer.from('\r\n')])
  for (let sent = 0; sent < bytes && isOpen(); sent += chunk.length)
    if (!socket.write(framed))
      await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
}

test('200 MB in chunks are refused, and take no memory, wherever they are sent', async () => {
  const { port, residentBytes } = await serve()
  const before = residentBytes()
  for (const path of ['/api/enrol', '/api/auth/sign-in/email', '/api/trpc/instance.create', '/', '/unread']) {
    const it = open(port)
    it.socket.write(head(path, 'Transfer-Encoding: chunked'))
    await pour(it, 200 * MB)
    await it.closed
    expect([path, it.said.slice(0, 12)]).toEqual([path, path === '/unread' ? 'HTTP/1.1 401' : 'HTTP/1.1 413'])
  }
  // far below one body; what the collector has not come to yet is more on a busy machine
  expect(residentBytes() - before).toBeLessThan(150 * MB)
})

test('who sends on without listening still reads the refusal afterwards', async () => {
  const { port } = await serve({ lingerMs: 20_000 })
  const it = open(port)
  it.socket.pause()
  it.socket.write(head('/api/enrol', 'Transfer-Encoding: chunked'))
  await pour(it, 32 * MB)
  expect(it.isOpen()).toBe(true)
  it.socket.resume()
  await expect.poll(() => it.said).toMatch(/^HTTP\/1.1 413 /)
  it.socket.destroy()
})

test('a body that says it is too long is refused before it is sent; what fits is answered', async () => {
  const { port } = await serve()
  const tooLong = open(port)
  tooLong.socket.write(head('/api/enrol', `Content-Length: ${64 * 1024 + 1}`))
  await tooLong.closed
  expect(tooLong.said).toMatch(/^HTTP\/1.1 413 .*\{"code":"request.too_large".*at most 64 kB/s)
  const sent = (path: string, length: number) =>
    fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body: 'x'.repeat(length) })
  expect(await (await sent('/api/enrol', 64 * 1024)).text()).toBe('65536')
  expect(await (await sent('/api/trpc/setting.set', MB)).text()).toBe('1048576')
  expect((await sent('/api/trpc/setting.set', MB + 1)).status).toBe(413)
  expect((await sent('/api/trpc/setup.complete', 64 * 1024 + 1)).status).toBe(413)
})

test('bodies that are sent at once share a bound, and are let go when they are done', async () => {
  const { port } = await serve({ bodiesBytes: MB })
  const held = open(port)
  held.socket.write(head('/api/trpc/told', 'Content-Length: 900000'))
  held.socket.write('x'.repeat(899_999))
  await expect.poll(() => held.said).toContain('899999 ')
  const post = () =>
    fetch(`http://127.0.0.1:${port}/api/trpc/setting.set`, { method: 'POST', body: 'x'.repeat(200_000) })
  expect((await post()).status).toBe(503)
  held.socket.write('x')
  await expect.poll(() => held.said).toContain('900000')
  await expect.poll(async () => (await post()).status).toBe(200)
})

test('a slow head, a slow body and a silent connection are ended; a stream goes on', async () => {
  const times = { headMs: 300, requestMs: 600, lookEveryMs: 50 }
  const { port } = await serve(times)
  const stream = open(port)
  stream.socket.write('GET /stream HTTP/1.1\r\nHost: floe\r\n\r\n')
  await expect.poll(() => stream.said).toContain('first')
  const slowHead = open(port)
  slowHead.socket.write('GET / HTTP/1.1\r\nHost: ')
  const slowBody = open(port)
  slowBody.socket.write(head('/api/enrol', 'Content-Length: 100'))
  const silent = open(port)
  const dripping = setInterval(() => slowBody.socket.write('x'), 50)
  await Promise.all([slowHead.closed, slowBody.closed, silent.closed])
  clearInterval(dripping)
  expect(slowBody.said).toMatch(/^HTTP\/1.1 408/)
  expect(stream.isOpen()).toBe(true)
  stream.socket.destroy()
  // the times of the limits themselves
  const { limits } = (await import('../../limits.mjs' as string)) as { limits: typeof times }
  expect(limits.requestMs + limits.lookEveryMs).toBeLessThanOrEqual(30_000)
})

test('connections, and requests on one of them, have a bound', async () => {
  const { port } = await serve({ connectionsOfProxy: 5, requestsOfConnection: 3 })
  const pipelined = open(port)
  pipelined.socket.write('GET /slow HTTP/1.1\r\nHost: floe\r\n\r\n'.repeat(4))
  await pipelined.closed
  const all = Array.from({ length: 8 }, () => open(port))
  await expect.poll(() => all.filter((it) => !it.isOpen()).length).toBe(3)
  for (const it of all) it.socket.destroy()
  await expect
    .poll(() =>
      fetch(`http://127.0.0.1:${port}/`)
        .then((r) => r.status)
        .catch(() => 0),
    )
    .toBe(200)
})

test('all connections together have a bound, too', async () => {
  const { port } = await serve({ connections: 5 })
  const all = Array.from({ length: 8 }, () => open(port))
  await expect.poll(() => all.filter((it) => !it.isOpen()).length).toBe(3)
  for (const it of all) it.socket.destroy()
})

test('a batch of more calls than a client makes is refused before any of them is made', async () => {
  const batch = (calls: number) =>
    `http://floe/api/trpc/${Array(calls).fill('setup.status').join(',')}?batch=1&input=%7B%7D`
  for (const calls of [CALLS_AT_ONCE_MAX + 1, 900]) {
    expect((await GET(new Request(batch(calls)))).status).toBe(400)
    const body = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }
    expect((await POST(new Request(batch(calls), body))).status).toBe(400)
  }
})
