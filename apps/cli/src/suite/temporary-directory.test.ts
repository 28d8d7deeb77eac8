import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTemporaryDirectory, removeTemporaryDirectory } from './temporary-directory'

test('everybody may make files in it, and it goes with what they left', () => {
  const path = makeTemporaryDirectory()
  expect(statSync(path).mode & 0o7777).toBe(0o1777)
  mkdirSync(join(path, 'a'))
  writeFileSync(join(path, 'a', 'b'), '')
  expect(removeTemporaryDirectory(path)).toBe(true)
  expect(existsSync(path)).toBe(false)
})

test('nothing is removed while a file system is mounted in it', () => {
  const path = makeTemporaryDirectory()
  try {
    writeFileSync(join(path, 'a'), '')
    expect(removeTemporaryDirectory(path, ['/', dirname(path), `${path}/mounted`])).toBe(false)
    expect(existsSync(join(path, 'a'))).toBe(true)
    expect(removeTemporaryDirectory(path, ['/', path.slice(0, -1)])).toBe(true)
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
})
