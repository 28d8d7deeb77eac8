import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTemporaryDirectory, removeTemporaryDirectory } from './temporary-directory'

test('everybody may make files in it, and it goes with what they left', () => {
  const path = makeTemporaryDirectory()
  expect(statSync(path).mode & 0o7777).toBe(0o1777)
  mkdirSync(join(path, 'a'))
  writeFileSync(join(path, 'a', 'b'), '')
  expect(removeTemporaryDirectory(path)).toBeNull()
  expect(existsSync(path)).toBe(false)
})

/** What statfs(2) calls the family of ext4. */
const EXT = 0xef53

test.skipIf(statfsSync(tmpdir()).type !== EXT)('ext4 takes it for the top of a hierarchy', () => {
  const path = makeTemporaryDirectory()
  try {
    expect(spawnSync('lsattr', ['-d', path], { encoding: 'utf8' }).stdout).toMatch(/^\S*T\S* /)
  } finally {
    rmSync(path, { recursive: true })
  }
})

test('what cannot be removed is said, and is no failure', () => {
  expect(removeTemporaryDirectory('/proc/self/status', [])).not.toBeNull()
})

test('nothing is removed while a file system is mounted in it', () => {
  const path = makeTemporaryDirectory()
  try {
    writeFileSync(join(path, 'a'), '')
    expect(removeTemporaryDirectory(path, ['/', dirname(path), `${path}/mounted`])).toMatch(/mounted/)
    expect(existsSync(join(path, 'a'))).toBe(true)
    expect(removeTemporaryDirectory(path, ['/', path.slice(0, -1)])).toBeNull()
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
})
