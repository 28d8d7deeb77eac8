import { chmodSync, chownSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { webSocketIn } from '@floe/domain'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { requireTrustedSocket, socketFetch } from './socket'

let directory: string
let server: Server
let heard: string[]
const installation = () => ({ webSocket: webSocketIn(directory), users: null })
const call = () =>
  socketFetch(installation())('http://console/api?a=b', {
    method: 'POST',
    body: 'asked',
    headers: { authorization: 'Bearer secret' },
  })

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'floe-socket-'))
  mkdirSync(join(directory, 'web'), { mode: 0o700 })
  heard = []
  server = createServer((request, response) => {
    heard.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    request.pipe(response)
  })
  await new Promise<void>((resolve) => server.listen(webSocketIn(directory), resolve))
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  rmSync(directory, { recursive: true, force: true })
})

test('a call goes over the socket and its answer comes back', async () => {
  const answer = await call()
  expect([answer.status, await new Response(answer.body).text(), heard]).toEqual([
    200,
    'asked',
    ['POST /api?a=b Bearer secret'],
  ])
})

test.each<[string, () => void]>([
  ['others may write the directory', () => chmodSync(join(directory, 'web'), 0o777)],
  ['others may write the one above it', () => chmodSync(directory, 0o1777)],
  [
    'a link stands in place of the directory',
    () => {
      renameSync(join(directory, 'web'), join(directory, 'elsewhere'))
      symlinkSync('elsewhere', join(directory, 'web'))
    },
  ],
])('no token is sent where %s', async (_, spoil) => {
  spoil()
  await expect(call()).rejects.toMatchObject({ fault: { code: 'console.socket_not_trusted' } })
  expect(heard).toEqual([])
})

test.runIf(process.getuid?.() === 0).each<[string, string]>([
  ['the directory', 'web'],
  ['the one above it', ''],
])('no token is sent where %s belongs to another user', async (_, path) => {
  chownSync(join(directory, path), 65_534, 65_534)
  await expect(call()).rejects.toMatchObject({ fault: { code: 'console.socket_not_trusted' } })
  expect(heard).toEqual([])
})

test('web’s own user has to exist', () => {
  const users = { controlDatabase: 'x', web: 'floe-web-nobody-has', controller: 'x', group: 'x' }
  expect(() => requireTrustedSocket({ ...installation(), users })).toThrow('not to be trusted')
})
