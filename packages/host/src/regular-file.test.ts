import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  closeSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readDescriptor, readRegularFile } from './regular-file'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-host-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))
const at = (name: string) => join(directory, name)
const codeOf = (read: () => unknown) => {
  try {
    return read()
  } catch (error) {
    return (error as { fault?: { code: string } }).fault?.code ?? (error as NodeJS.ErrnoException).code
  }
}

test('a regular file is read whole', () => {
  writeFileSync(at('a'), 'täxt\n')
  expect(readRegularFile(at('a'))).toBe('täxt\n')
  writeFileSync(at('empty'), '')
  expect(readRegularFile(at('empty'))).toBe('')
})

test('one that is missing is told by the system’s own code', () => {
  expect(codeOf(() => readRegularFile(at('a')))).toBe('ENOENT')
})

test.each<[string, (path: string) => void]>([
  ['a link', (path) => symlinkSync('/etc/passwd', path)],
  ['a pipe, which nobody writes,', (path) => execFileSync('mkfifo', [path])],
  ['a directory', (path) => execFileSync('mkdir', [path])],
  ['a device behind a link', (path) => symlinkSync('/dev/zero', path)],
])('%s in its place is refused at once', (_, make) => {
  make(at('a'))
  expect(codeOf(() => readRegularFile(at('a')))).toBe('host.not_a_file')
})

test('a socket in its place is refused', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(at('a'), resolve))
  expect(codeOf(() => readRegularFile(at('a')))).toBe('host.not_a_file')
  await new Promise((resolve) => server.close(resolve))
})

test('a file is read up to the bound, and no further', () => {
  writeFileSync(at('a'), 'x'.repeat(100))
  expect(readRegularFile(at('a'), 100)).toHaveLength(100)
  expect(codeOf(() => readRegularFile(at('a'), 99))).toBe('host.file_too_large')
  truncateSync(at('a'), 64 * 2 ** 30)
  expect(codeOf(() => readRegularFile(at('a')))).toBe('host.file_too_large')
})

test('a file that is longer than it was said to be is read whole, and the bound still holds', () => {
  // the kernel says 0 of every file of /proc, as of one that grows after it was asked
  const read = (maxBytes: number) => {
    const fd = openSync('/proc/self/status', 'r')
    try {
      return readDescriptor(fd, '/proc/self/status', maxBytes)
    } finally {
      closeSync(fd)
    }
  }
  expect(read(1 << 20)).toMatch(/^Name:[\s\S]*\nnonvoluntary_ctxt_switches:\s+\d+\n$/)
  expect(codeOf(() => read(100))).toBe('host.file_too_large')
})

test('what was opened is read from its beginning, wherever it was read before', () => {
  writeFileSync(at('a'), 'one\n')
  const fd = openSync(at('a'), 'r')
  expect(readDescriptor(fd, at('a'))).toBe('one\n')
  appendFileSync(at('a'), 'two\n')
  expect(readDescriptor(fd, at('a'))).toBe('one\ntwo\n')
  closeSync(fd)
})
