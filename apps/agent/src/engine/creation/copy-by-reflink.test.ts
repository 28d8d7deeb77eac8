import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeScratchDirectory } from '@floe/testkit'
import { afterAll, expect, test } from 'vitest'
import { hasMoreFiles } from './copy-by-reflink'

const scratch = makeScratchDirectory('copy-by-reflink')
afterAll(() => scratch.remove())
const self = { name: 'self', uid: null, gid: null }

test('files and directories below are counted no further than the bound', async () => {
  mkdirSync(join(scratch.path, 'd'))
  for (const name of ['a', 'd/b', 'd/c\nd']) writeFileSync(join(scratch.path, name), '')
  expect(await hasMoreFiles(self, scratch.path, 4)).toBe(false)
  expect(await hasMoreFiles(self, scratch.path, 3)).toBe(true)
  expect(await hasMoreFiles(self, scratch.path, 0)).toBe(true)
})
