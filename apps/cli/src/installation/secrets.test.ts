import { randomUUID } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { identityIsGood } from '@floe/authority'
import { hostUri, rightUri, secretFiles } from '@floe/domain'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { secretsOf } from './directories'
import { type Home, homeAt, makeHome } from './home'
import { ensureSecrets } from './secrets'

let home: Home
const host = {
  hostId: randomUUID(),
  hostAddress: '127.0.0.1',
  consoleDirectory: '',
  users: null,
  controlDatabase: { url: null as string | null },
}
beforeEach(() => {
  home = homeAt(mkdtempSync(join(tmpdir(), 'floe-secrets-')))
  makeHome(home)
  host.consoleDirectory = home.directory
  for (const name of ['web', 'controller'] as const)
    mkdirSync(secretsOf(host, name), { recursive: true, mode: 0o700 })
})
afterEach(() => rmSync(home.directory, { recursive: true, force: true }))

const ofWeb = (name: string) => join(secretsOf(host, 'web'), name)
const ofController = (name: string) => join(secretsOf(host, 'controller'), name)

test('every secret is made once, lies where its process looks for it and nowhere else, and only its owner may read it', async () => {
  const { controlOwnerPassword, controlWebPassword, controlControllerPassword, ...made } = secretFiles
  expect((await ensureSecrets(home, host)).sort()).toEqual(Object.values(made).sort())
  expect(readdirSync(home.secrets).sort()).toEqual(['agent.pem', 'auth-secret', 'ca.pem', 'cli-token'])
  expect(readdirSync(secretsOf(host, 'web')).sort()).toEqual(['auth-secret', 'ca.pem', 'web.pem'])
  expect(readdirSync(secretsOf(host, 'controller')).sort()).toEqual([
    'auth-secret',
    'ca.key',
    'ca.pem',
    'controller.pem',
  ])
  for (const directory of [home.secrets, secretsOf(host, 'web'), secretsOf(host, 'controller')]) {
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    for (const file of readdirSync(directory))
      expect(statSync(join(directory, file)).mode & 0o777).toBe(0o600)
  }
  expect(await ensureSecrets(home, host)).toEqual([])
})

test('with a control database that Floe does not run, web and controller have a password each, of which the other one knows nothing', async () => {
  const external = { ...host, controlDatabase: { url: 'postgresql://o@db.example:5432/floe' } }
  expect(await ensureSecrets(home, external)).toEqual(
    expect.arrayContaining(['control-web-password', 'control-controller-password']),
  )
  const web = readFileSync(ofWeb('control-web-password'), 'utf8')
  const controller = readFileSync(ofController('control-controller-password'), 'utf8')
  expect(web.trim()).toMatch(/^[\w-]{43}$/)
  expect(controller).not.toBe(web)
  expect(existsSync(ofWeb('control-controller-password'))).toBe(false)
  expect(existsSync(ofController('control-web-password'))).toBe(false)
  expect(await ensureSecrets(home, external)).toEqual([])
  expect(readFileSync(ofWeb('control-web-password'), 'utf8')).toBe(web)
  // what a process did to its own is undone from what the launcher keeps
  writeFileSync(ofController('control-controller-password'), 'chosen by the controller\n')
  await ensureSecrets(home, external)
  expect(readFileSync(ofController('control-controller-password'), 'utf8')).toBe(controller)
})

test('the secrets of an earlier version move to whose they are, unchanged, and no password stays', async () => {
  await ensureSecrets(home, host)
  const was = {
    key: readFileSync(ofController('ca.key'), 'utf8'),
    web: readFileSync(ofWeb('web.pem'), 'utf8'),
    secret: readFileSync(ofWeb('auth-secret'), 'utf8'),
  }
  for (const file of [ofController('ca.key'), ofController('controller.pem'), ofWeb('web.pem')])
    renameSync(file, join(home.secrets, basename(file)))
  for (const name of ['web', 'controller'] as const) rmSync(join(secretsOf(host, name), 'auth-secret'))
  writeFileSync(join(home.secrets, 'control-password'), 'a password')
  // killed after the first of them
  writeFileSync(ofController('ca.key'), was.key)
  expect(await ensureSecrets(home, host)).toEqual([])
  expect({
    key: readFileSync(ofController('ca.key'), 'utf8'),
    web: readFileSync(ofWeb('web.pem'), 'utf8'),
    secret: readFileSync(ofWeb('auth-secret'), 'utf8'),
  }).toEqual(was)
  expect(readdirSync(home.secrets).sort()).toEqual(['agent.pem', 'auth-secret', 'ca.pem', 'cli-token'])
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
  const read = (file: string) => readFileSync(file, 'utf8')
  const is = (file: string, uri: string) =>
    identityIsGood(read(file), { authority: read(join(home.secrets, 'ca.pem')), uri })
  expect(is(ofWeb('web.pem'), rightUri('read'))).toBe(true)
  expect(is(ofWeb('web.pem'), rightUri('task'))).toBe(false)
  expect(is(ofController('controller.pem'), rightUri('task'))).toBe(true)
  expect(is(join(home.secrets, 'agent.pem'), hostUri(host.hostId))).toBe(true)
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
  rmSync(ofWeb('web.pem'))
  rmSync(ofController('controller.pem'))
  expect((await ensureSecrets(home, host)).sort()).toEqual(['agent.pem', 'controller.pem', 'web.pem'])
  for (const old of ['agent-read.key', 'agent-task.key', 'agent.key'])
    expect(existsSync(join(home.secrets, old))).toBe(false)
  expect(readFileSync(join(home.secrets, 'ca.pem'), 'utf8')).toBe(authority)
})

test('another address of the host gets another certificate', async () => {
  await ensureSecrets(home, host)
  expect(await ensureSecrets(home, { ...host, hostAddress: '10.0.0.4' })).toEqual(['agent.pem'])
})
