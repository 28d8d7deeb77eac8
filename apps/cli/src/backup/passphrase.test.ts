import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readPassphrase } from './passphrase'

const directory = mkdtempSync(join(tmpdir(), 'floe-passphrase-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

test('a passphrase is one line; a new one is long enough not to be found by trying', async () => {
  const of = (text: string, purpose: 'new' | 'known') => {
    const file = join(directory, 'passphrase')
    writeFileSync(file, text)
    return readPassphrase(file, purpose)
  }
  const refused = { fault: { code: 'usage.no_passphrase' } }
  expect(await of('four random words\n', 'new')).toBe('four random words')
  expect(await of('short\r\n', 'known')).toBe('short')
  for (const text of [
    'short',
    'eleven char',
    '',
    'two lines of\ntext\n',
    'a\0b is not a line',
    'x'.repeat(2_000),
  ])
    await expect(of(text, 'new'), JSON.stringify(text)).rejects.toMatchObject(refused)
  await expect(readPassphrase(join(directory, 'none'), 'known')).rejects.toMatchObject(refused)
})
