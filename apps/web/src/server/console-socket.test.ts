import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

let directory: string
let path: string
let running: ChildProcess[]
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-web-'))
  path = join(directory, 'console.sock')
  running = []
})
afterEach(async () => {
  for (const child of running) await kill(child)
  rmSync(directory, { recursive: true })
})

/** A server with both doors in a process of its own, made the way start.mjs does it. Answers what it says first. */
async function serve(): Promise<{ child: ChildProcess; said: string }> {
  const module = (name: string) => JSON.stringify(join(import.meta.dirname, '../..', name))
  const program = `
    import { PEER_HEADER } from ${module('peer-address.mjs')}
    import { listenOnSocket } from ${module('console-socket.mjs')}
    import { createServer } from 'node:http'
    process.stdin.on('data', () => process.exit(0))
    const main = createServer((request, response) => {
      if (request.url !== '/stream') return response.end(request.headers[PEER_HEADER])
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      let n = 0
      const timer = setInterval(() => response.write('data: ' + ++n + '\\n\\n'), 20)
      response.on('close', () => clearInterval(timer))
    })
    main.listen(0, '127.0.0.1', () =>
      listenOnSocket(main, ${JSON.stringify(path)}).then(
        () => console.log(main.address().port),
        (error) => console.log(error.message)))`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program])
  running.push(child)
  const [said] = await once(child.stdout, 'data')
  return { child, said: String(said).trim() }
}

async function kill(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

const ask = (options: object) =>
  new Promise<IncomingMessage>((resolve, reject) => get(options, resolve).on('error', reject))

async function text(options: object) {
  let read = ''
  for await (const chunk of await ask(options)) read += chunk
  return read
}

test('the console answers at its socket as at its port, and tells the two apart', async () => {
  const { said: port } = await serve()
  expect(await text({ host: '127.0.0.1', port, headers: { 'x-floe-peer': 'local' } })).toBe('127.0.0.1')
  expect(await text({ socketPath: path, path: '/', headers: { 'x-floe-peer': '10.0.0.7' } })).toBe('local')
  expect(statSync(path).mode & 0o777).toBe(0o666)
})

test('a stream through the socket goes on and ends when its reader leaves', async () => {
  await serve()
  const stream = await ask({ socketPath: path, path: '/stream' })
  let read = ''
  for await (const chunk of stream) {
    read += chunk
    if (read.includes('data: 3')) break
  }
  expect(read).toMatch(/^data: 1\n\ndata: 2\n\ndata: 3\n/)
})

test('the socket of a killed console is taken over; what is no socket stays', async () => {
  const { child } = await serve()
  await kill(child)
  expect(existsSync(path)).toBe(true)
  const { child: second } = await serve()
  expect(await text({ socketPath: path, path: '/' })).toBe('local')
  await kill(second)
  rmSync(path)
  writeFileSync(path, 'kept')
  expect((await serve()).said).toBe(`"${path}" is in the way: it is not a socket`)
})

test('a console that is told to end leaves no socket, and takes none of its successor’s', async () => {
  const { child } = await serve()
  expect(existsSync(path)).toBe(true)
  child.stdin?.end('end')
  await once(child, 'exit')
  expect(existsSync(path)).toBe(false)
  const { child: first } = await serve()
  // as when a console is started while the former one ends
  const { child: second } = await serve()
  first.stdin?.end('end')
  await once(first, 'exit')
  expect(await text({ socketPath: path, path: '/' })).toBe('local')
  await kill(second)
})
