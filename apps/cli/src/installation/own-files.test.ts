import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readOwned } from './own-files'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-own-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))
const at = (name: string) => join(directory, name)

test('a regular file is read whole', () => {
  writeFileSync(at('a'), 'text\n')
  expect(readOwned(at('a'))).toBe('text\n')
})

test.each<[string, (path: string) => void]>([
  ['a link', (path) => symlinkSync('/etc/passwd', path)],
  ['a pipe, which nobody writes,', (path) => execFileSync('mkfifo', [path])],
  ['a directory', (path) => execFileSync('mkdir', [path])],
  ['a device', (path) => symlinkSync('/dev/zero', path)],
])('%s in its place is refused at once', (_, make) => {
  make(at('a'))
  expect(() => readOwned(at('a'))).toThrow()
})

test('a file without end is read no further than the bound', () => {
  writeFileSync(at('a'), '')
  truncateSync(at('a'), 64 * 2 ** 30)
  expect(() => readOwned(at('a'))).toThrow('is larger than')
})
