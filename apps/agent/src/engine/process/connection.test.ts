import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { makeScratchDirectory } from '@floe/testkit'
import { afterAll, expect, test } from 'vitest'
import { connectEngine } from './connection'

const scratch = makeScratchDirectory('connection')
afterAll(() => scratch.remove())

test('a server that takes the connection and says nothing is given up after the time that was set', async () => {
  const server = createServer().listen(join(scratch.path, '.s.PGSQL.5432'))
  await once(server, 'listening')
  const address = { socketDirectory: scratch.path, port: 5432, password: 'secret', uid: null }
  const connecting = connectEngine(address, { applicationName: 'test', connectMs: 100, statementMs: 100 })
  await expect(connecting).rejects.toThrow('timeout expired')
  server.close()
})
