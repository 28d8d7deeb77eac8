import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { secretFiles } from '@floe/domain'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Home, homeAt, makeHome } from './home'
import { ensureSecrets } from './secrets'

let home: Home
beforeEach(() => {
  home = homeAt(mkdtempSync(join(tmpdir(), 'floe-secrets-')))
  makeHome(home)
})
afterEach(() => rmSync(home.directory, { recursive: true, force: true }))

test('every secret is made once, and only its owner may read it', async () => {
  expect((await ensureSecrets(home)).sort()).toEqual(Object.values(secretFiles).sort())
  for (const file of Object.values(secretFiles))
    expect(statSync(join(home.secrets, file)).mode & 0o777).toBe(0o600)
  expect(statSync(home.secrets).mode & 0o777).toBe(0o700)
  expect(await ensureSecrets(home)).toEqual([])
})

test('a run that was killed in the middle is completed without changing what it made', async () => {
  await ensureSecrets(home)
  const token = readFileSync(join(home.secrets, 'cli-token'), 'utf8')
  rmSync(join(home.secrets, 'agent.pem'))
  rmSync(join(home.secrets, 'auth-secret'))
  expect((await ensureSecrets(home)).sort()).toEqual(['agent.key', 'agent.pem', 'auth-secret'])
  expect(readFileSync(join(home.secrets, 'cli-token'), 'utf8')).toBe(token)
})

test('a directory that cannot be made is said so, and waited for no longer', () => {
  expect(() => makeHome(homeAt('/proc/nothing/here'))).toThrow('could not create "/proc/nothing/here"')
})

test('a certificate that cannot be read is replaced', async () => {
  await ensureSecrets(home)
  writeFileSync(join(home.secrets, 'agent.pem'), 'damaged')
  expect((await ensureSecrets(home)).sort()).toEqual(['agent.key', 'agent.pem'])
})
