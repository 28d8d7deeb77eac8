import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Installation, InstanceId, secretFiles, webSocketIn } from '@floe/domain'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { homeAt } from '../installation/home'
import { consoleFault, createConsoleClient } from './client'
import { idempotencyKey, submitOnce } from './submit-once'

const operationId = '0b0c2f34-9f4e-4d8e-8a43-5d8f0c7f2f10'
const instanceId = InstanceId.parse('6a1b0c7e-5d0e-4f5a-9b0e-0c2d3e4f5a6b')

let directory: string
let server: Server
/** Keys of the requests that arrived, and what each is answered; the last one is for all that follow. */
let keys: (string | undefined)[]
let answers: ((response: ServerResponse) => void)[]

const answered = (response: ServerResponse) =>
  response
    .setHeader('content-type', 'application/json')
    .end(JSON.stringify([{ result: { data: { json: { operationId } } } }]))
const refused = (response: ServerResponse) =>
  response.writeHead(409, { 'content-type': 'application/json' }).end(
    JSON.stringify([
      {
        error: {
          json: {
            message: 'busy',
            code: -32_009,
            data: { code: 'CONFLICT', fault: { code: 'operation.conflict', message: 'busy' } },
          },
        },
      },
    ]),
  )
/** The request was taken, and its answer is lost. */
const broken = (response: ServerResponse) => response.destroy()

async function take(request: IncomingMessage, response: ServerResponse) {
  let body = ''
  for await (const chunk of request) body += chunk
  keys.push(JSON.parse(body)['0'].json.idempotencyKey)
  const answer = answers.length > 1 ? answers.shift() : answers[0]
  answer?.(response)
}

beforeEach(async () => {
  keys = []
  directory = mkdtempSync(join(tmpdir(), 'floe-test-'))
  mkdirSync(join(directory, 'secrets'))
  writeFileSync(join(directory, 'secrets', secretFiles.cliToken), 'token')
  server = createServer((request, response) => void take(request, response))
  mkdirSync(dirname(webSocketIn(directory)), { mode: 0o700 })
  await new Promise<void>((resolve) => server.listen(webSocketIn(directory), resolve))
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  rmSync(directory, { recursive: true })
})

function reload(key?: string, times: { repeatMs?: number } = {}) {
  const { trpc } = createConsoleClient(homeAt(directory), {
    webUrl: 'http://127.0.0.1:3000',
    webSocket: webSocketIn(directory),
    users: null,
  } as Installation)
  return submitOnce(key, (idempotencyKey) => trpc.instance.reload.mutate({ instanceId, idempotencyKey }), {
    pauseMs: 5,
    ...times,
  })
}

test('a request whose answer was lost is repeated by the same key, which nobody else has', async () => {
  answers = [broken, broken, answered]
  expect(await reload()).toEqual({ operationId })
  expect(keys).toHaveLength(3)
  expect(new Set(keys).size).toBe(1)
  await reload()
  expect(keys[3]).not.toBe(keys[0])
})

test('a key that was given is the one that is sent', async () => {
  answers = [broken, answered]
  await reload('my-own-key')
  expect(keys).toEqual(['my-own-key', 'my-own-key'])
})

test('what the console refuses is not repeated', async () => {
  answers = [refused]
  const error = await reload().catch(consoleFault)
  expect(error).toMatchObject({ fault: { code: 'operation.conflict' } })
  expect(keys).toHaveLength(1)
})

test('a console that does not run is said at once', async () => {
  await new Promise((resolve) => server.close(resolve))
  const error = await reload(undefined, { repeatMs: 60_000 }).catch(consoleFault)
  expect(error).toMatchObject({ fault: { code: 'console.unreachable' } })
  expect(keys).toEqual([])
})

test('a connection that stays broken is given up, and the key to go on with is told', async () => {
  answers = [broken]
  const error = await reload('my-own-key', { repeatMs: 50 }).catch(consoleFault)
  expect(error).toMatchObject({
    fault: { code: 'console.answer_lost', hint: expect.stringContaining('--idempotency-key my-own-key') },
  })
  expect(keys.length).toBeGreaterThan(1)
})

test('a key that the console would refuse is a mistake of the caller', () => {
  expect(idempotencyKey('12345678')).toBe('12345678')
  expect(() => idempotencyKey('1234567')).toThrow('8 to 100')
  expect(() => idempotencyKey('x'.repeat(101))).toThrow('8 to 100')
})
