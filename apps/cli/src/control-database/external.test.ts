import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeAuthority } from '@floe/authority'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { readOwnerPassword, readRootCertificates, toolEnvironment } from './external'

const directory = mkdtempSync(join(tmpdir(), 'floe-external-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
afterEach(() => vi.unstubAllEnvs())

const file = (text: string) => {
  const path = join(directory, 'given')
  writeFileSync(path, text)
  return path
}

describe('the owner’s password', () => {
  test.each(['a b\\c', 'a b\\c\n', 'a b\\c\r\n'])(
    'is what the file holds, but for one newline at its end: %j',
    (text) => {
      expect(readOwnerPassword(file(text))).toBe('a b\\c')
    },
  )

  test.each(['', '\n', 'two\nlines\n', `${'x'.repeat(1_025)}\n`])(
    'is refused when the file holds none: %#',
    (text) => {
      expect(() => readOwnerPassword(file(text))).toThrow('there is no password')
    },
  )

  test('is missed when there is no such file', () => {
    expect(() => readOwnerPassword(join(directory, 'nowhere'))).toThrow('could not read the password')
  })
})

describe('the authorities’ certificates', () => {
  test('are what the file holds', async () => {
    const { certificate } = await makeAuthority()
    expect(readRootCertificates(file(certificate))).toBe(certificate)
  })

  test('are refused beside a private key, which others would get to read', async () => {
    const { certificate, key } = await makeAuthority()
    expect(() => readRootCertificates(file(`${certificate}${key}`))).toThrow('does not hold certificates')
  })

  test('are refused when they are none', () => {
    expect(() => readRootCertificates(file('a file of something else'))).toThrow('does not hold certificates')
    expect(() => readRootCertificates(join(directory, 'nowhere'))).toThrow('could not read')
  })
})

test('no variable leads the tools to another server, or past the verification', () => {
  for (const name of ['PGHOST', 'PGSSLMODE', 'PGPASSWORD', 'NODE_TLS_REJECT_UNAUTHORIZED', 'DATABASE_OWNER'])
    vi.stubEnv(name, 'x')
  expect(Object.entries(toolEnvironment()).filter(([, value]) => value === 'x')).toEqual([])
  expect(toolEnvironment().PATH).toBe(process.env.PATH)
})
