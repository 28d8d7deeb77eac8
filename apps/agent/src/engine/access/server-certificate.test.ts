import { X509Certificate } from 'node:crypto'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeSelfSignedIdentity } from '@floe/authority/self-signed'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { dataFiles } from '../directory/layout'
import { readManagedSettings, writeManagedSettings } from '../settings/managed-file'
import { isSealed, seal } from '../settings/tracked-files'
import { ensureServerCertificate } from './server-certificate'

const user = { name: 'engine', uid: null, gid: null }
let files: ReturnType<typeof dataFiles>
beforeEach(() => {
  files = dataFiles(mkdtempSync(join(tmpdir(), 'floe-certificate-')))
})
afterEach(() => rmSync(files.dataDirectory, { recursive: true }))

const managed = () => readFileSync(files.managedFile, 'utf8')

test('makes a key that only the engine reads, with its certificate, and leaves both alone from then on', async () => {
  writeManagedSettings(files.managedFile, new Map(), user)
  expect(await ensureServerCertificate(files, 'alpha', user)).toBe(true)
  const made = readFileSync(files.certificateFile, 'utf8')
  expect(new X509Certificate(made).subject).toBe('CN=alpha')
  expect(made).toContain('PRIVATE KEY')
  expect(statSync(files.certificateFile).mode & 0o777).toBe(0o600)
  expect(await ensureServerCertificate(files, 'alpha', user)).toBe(false)
  expect(readFileSync(files.certificateFile, 'utf8')).toBe(made)
})

/** As an earlier version wrote it. */
const former = seal("# Written by Floe\nwork_mem = '7MB'\n\ninclude_if_exists 'floe.cluster.conf'\n")

test('a managed file of an earlier version brings TLS in before its settings, keeps these, and stays sealed', async () => {
  writeFileSync(files.managedFile, former)
  expect(await ensureServerCertificate(files, 'alpha', user)).toBe(true)
  expect(readManagedSettings(files.managedFile)).toEqual(new Map([['work_mem', '7MB']]))
  expect(managed().indexOf('floe.tls.conf')).toBeLessThan(managed().indexOf('work_mem'))
  expect(isSealed(managed())).toBe(true)
  expect(await ensureServerCertificate(files, 'alpha', user)).toBe(false)
})

test.each([
  ['postgresql.conf', "ssl = on\nssl_cert_file = 'mine.crt'\n"],
  ['postgresql.auto.conf', "ssl_ca_file = 'mine.crt'\n"],
  ['floe.conf', "ssl = 'off'\n"],
])(
  'an instance of an earlier version whose %s says something of TLS is left as it is',
  async (file, text) => {
    writeFileSync(files.managedFile, former)
    writeFileSync(join(files.dataDirectory, file), text)
    const before = managed()
    expect(await ensureServerCertificate(files, 'alpha', user)).toBe(false)
    expect(existsSync(files.certificateFile)).toBe(false)
    expect(managed()).toBe(before)
  },
)

test('a person’s own certificate, chosen later, is kept', async () => {
  writeManagedSettings(files.managedFile, new Map(), user)
  await ensureServerCertificate(files, 'alpha', user)
  writeManagedSettings(files.managedFile, new Map([['ssl_cert_file', 'own.crt']]), user)
  expect(await ensureServerCertificate(files, 'alpha', user)).toBe(false)
  expect(managed().indexOf('floe.tls.conf')).toBeLessThan(managed().indexOf('own.crt'))
})

test.each([
  ['that others can read', () => chmodSync(files.certificateFile, 0o640)],
  ['that is empty', () => writeFileSync(files.certificateFile, '')],
  [
    'whose key is another one’s',
    async () => {
      const [one, other] = [await makeSelfSignedIdentity('a'), await makeSelfSignedIdentity('b')]
      const at = '-----BEGIN PRIVATE KEY'
      writeFileSync(files.certificateFile, one.split(at)[0] + at + other.split(at)[1])
    },
  ],
])('a file %s would keep the engine from starting, and is made anew', async (_, spoil) => {
  writeManagedSettings(files.managedFile, new Map(), user)
  await ensureServerCertificate(files, 'alpha', user)
  await spoil()
  expect(await ensureServerCertificate(files, 'alpha', user)).toBe(true)
  expect(new X509Certificate(readFileSync(files.certificateFile)).subject).toBe('CN=alpha')
  expect(statSync(files.certificateFile).mode & 0o777).toBe(0o600)
})

test('a managed file that is missing stays so: the engine must not start without its settings', async () => {
  await ensureServerCertificate(files, 'alpha', user)
  expect(existsSync(files.managedFile)).toBe(false)
  writeFileSync(files.managedFile, '')
  await ensureServerCertificate(files, 'alpha', user)
  expect(isSealed(managed())).toBe(false)
})

test('an edit by hand stays one: it is not sealed over', async () => {
  writeFileSync(files.managedFile, "work_mem = '9MB'\n")
  await ensureServerCertificate(files, 'alpha', user)
  expect(managed()).toContain("work_mem = '9MB'")
  expect(managed()).toMatch(
    /^include_if_exists 'floe\.tls\.conf'\n[\s\S]*\ninclude_if_exists 'floe\.cluster\.conf'\n$/,
  )
  expect(isSealed(managed())).toBe(false)
  expect(await ensureServerCertificate(files, 'alpha', user)).toBe(false)
})

test('a name with characters of its own is taken as it is', async () => {
  writeManagedSettings(files.managedFile, new Map(), user)
  await ensureServerCertificate(files, 'a, O=b', user)
  expect(new X509Certificate(readFileSync(files.certificateFile)).subject).toBe('CN=a\\, O=b')
})
