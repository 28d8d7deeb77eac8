import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createFile, removeFile, removeUnfinished, replaceFile } from './replace-file'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-host-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))
const at = (name: string) => join(directory, name)
const modeOf = (path: string) => statSync(path).mode & 0o777

test('a replaced file has the new text, is for its owner alone, and leaves no other file behind', () => {
  writeFileSync(at('f'), 'old')
  replaceFile(at('f'), 'new')
  expect(readFileSync(at('f'), 'utf8')).toBe('new')
  expect(readdirSync(directory)).toEqual(['f'])
  expect(modeOf(at('f'))).toBe(0o600)
})

test('a symbolic link is not written through: the file takes its place', () => {
  writeFileSync(at('target'), 'secret')
  symlinkSync(at('target'), at('link'))
  replaceFile(at('link'), 'mine')
  expect(readFileSync(at('target'), 'utf8')).toBe('secret')
  expect(lstatSync(at('link')).isFile()).toBe(true)
})

test('whoever could read the file can read the one that replaces it with its mode kept', () => {
  writeFileSync(at('f'), 'old')
  chmodSync(at('f'), 0o640)
  const umask = process.umask(0o077)
  try {
    replaceFile(at('f'), 'new', { mode: 'kept' })
  } finally {
    process.umask(umask)
  }
  expect(modeOf(at('f'))).toBe(0o640)
  expect(() => replaceFile(at('missing'), 'new', { mode: 'kept' })).toThrow('ENOENT')
  expect(readdirSync(directory)).toEqual(['f'])
})

test('a replacement that fails leaves the old file, and nothing of itself', () => {
  mkdirSync(at('f'))
  writeFileSync(at('f/inside'), '')
  expect(() => replaceFile(at('f'), 'new')).toThrow()
  expect(readdirSync(directory)).toEqual(['f'])
})

test('a file is made whole where there is none, for its owner alone', () => {
  expect(createFile(at('f'), 'mine')).toBe(true)
  expect(readFileSync(at('f'), 'utf8')).toBe('mine')
  expect(modeOf(at('f'))).toBe(0o600)
  expect(statSync(at('f')).nlink).toBe(1)
  expect(readdirSync(directory)).toEqual(['f'])
})

test('what is there is never written over by a file that is made, also not through a link', () => {
  writeFileSync(at('f'), 'theirs')
  symlinkSync(at('nowhere'), at('link'))
  for (const name of ['f', 'link']) expect(createFile(at(name), 'mine')).toBe(false)
  expect(readFileSync(at('f'), 'utf8')).toBe('theirs')
  expect(readdirSync(directory).sort()).toEqual(['f', 'link'])
  expect(() => createFile(at('f/below'), 'mine')).toThrow('ENOTDIR')
})

test.runIf(process.getuid?.() === 0)('a file is given to a user before it has its name', () => {
  replaceFile(at('f'), 'new', { giveTo: { uid: 65_534, gid: 65_533 } })
  expect(statSync(at('f'))).toMatchObject({ uid: 65_534, gid: 65_533 })
  replaceFile(at('f'), 'new', { giveTo: { uid: null, gid: null } })
  expect(statSync(at('f')).uid).toBe(0)
})

test('a file is removed and not what it links to; a missing one is fine', () => {
  writeFileSync(at('target'), '')
  symlinkSync(at('target'), at('link'))
  removeFile(at('link'))
  removeFile(at('link'))
  expect(readdirSync(directory)).toEqual(['target'])
})

test('what a killed process left of a replacement is removed, and nothing else', () => {
  for (const name of ['f', 'f.0123456789ab.tmp', 'f.tmp', '0123456789ab.tmp.f']) writeFileSync(at(name), '')
  removeUnfinished(directory)
  removeUnfinished(at('missing'))
  expect(readdirSync(directory).sort()).toEqual(['0123456789ab.tmp.f', 'f', 'f.tmp'])
})
