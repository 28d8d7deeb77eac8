import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { identityIsGood } from '@floe/authority'
import { hostUri, rightUri, secretFiles } from '@floe/domain'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Home, homeAt, makeHome } from './home'
import { ensureSecrets } from './secrets'

let home: Home
const host = { hostId: randomUUID(), hostAddress: '127.0.0.1' }
beforeEach(() => {
  home = homeAt(mkdtempSync(join(tmpdir(), 'floe-secrets-')))
  makeHome(home)
})
afterEach(() => rmSync(home.directory, { recursive: true, force: true }))

test('every secret is made once, and only its owner may read it', async () => {
  expect((await ensureSecrets(home, host)).sort()).toEqual(Object.values(secretFiles).sort())
  for (const file of Object.values(secretFiles))
    expect(statSync(join(home.secrets, file)).mode & 0o777).toBe(0o600)
  expect(statSync(home.secrets).mode & 0o777).toBe(0o700)
  expect(await ensureSecrets(home, host)).toEqual([])
})

test('a run that was killed in the middle is completed without changing what it made', async () => {
  await ensureSecrets(home, host)
  const token = readFileSync(join(home.secrets, 'cli-token'), 'utf8')
  rmSync(join(home.secrets, 'agent.pem'))
  rmSync(join(home.secrets, 'auth-secret'))
  expect((await ensureSecrets(home, host)).sort()).toEqual(['agent.pem', 'auth-secret'])
  expect(readFileSync(join(home.secrets, 'cli-token'), 'utf8')).toBe(token)
})

test('a directory that cannot be made is said so, and waited for no longer', () => {
  expect(() => makeHome(homeAt('/proc/nothing/here'))).toThrow('could not create "/proc/nothing/here"')
})

test('a certificate that cannot be read is replaced', async () => {
  await ensureSecrets(home, host)
  writeFileSync(join(home.secrets, 'agent.pem'), 'damaged')
  expect((await ensureSecrets(home, host)).sort()).toEqual(['agent.pem'])
})

test('web may only read, the controller may start tasks, and the agent is this host', async () => {
  await ensureSecrets(home, host)
  const read = (file: string) => readFileSync(join(home.secrets, file), 'utf8')
  const is = (file: string, uri: string) => identityIsGood(read(file), { authority: read('ca.pem'), uri })
  expect(is('web.pem', rightUri('read'))).toBe(true)
  expect(is('web.pem', rightUri('task'))).toBe(false)
  expect(is('controller.pem', rightUri('task'))).toBe(true)
  expect(is('agent.pem', hostUri(host.hostId))).toBe(true)
})

test('an installation of shared keys becomes one of certificates, by the authority it had', async () => {
  await ensureSecrets(home, host)
  const authority = readFileSync(join(home.secrets, 'ca.pem'), 'utf8')
  const [agent, key] = readFileSync(join(home.secrets, 'agent.pem'), 'utf8').split(
    /(?=-----BEGIN PRIVATE KEY)/,
  )
  writeFileSync(join(home.secrets, 'agent.pem'), agent as string)
  writeFileSync(join(home.secrets, 'agent.key'), key as string)
  for (const old of ['agent-read.key', 'agent-task.key']) writeFileSync(join(home.secrets, old), 'shared\n')
  rmSync(join(home.secrets, 'web.pem'))
  rmSync(join(home.secrets, 'controller.pem'))
  expect((await ensureSecrets(home, host)).sort()).toEqual(['agent.pem', 'controller.pem', 'web.pem'])
  for (const old of ['agent-read.key', 'agent-task.key', 'agent.key'])
    expect(existsSync(join(home.secrets, old))).toBe(false)
  expect(readFileSync(join(home.secrets, 'ca.pem'), 'utf8')).toBe(authority)
})

test('another address of the host gets another certificate', async () => {
  await ensureSecrets(home, host)
  expect(await ensureSecrets(home, { ...host, hostAddress: '10.0.0.4' })).toEqual(['agent.pem'])
})
