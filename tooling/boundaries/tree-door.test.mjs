import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fileCalls, roundTheDoor } from './tree-door.mjs'

let root
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'floe-door-'))
})
afterEach(() => rmSync(root, { recursive: true }))

function write(file, source) {
  const path = join(root, 'apps/agent/src', file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, source)
}

test('every way to the file system is seen, types and constants are none', () => {
  expect(fileCalls("import { constants, openSync, rmSync as remove, type Stats } from 'node:fs'")).toEqual([
    'openSync',
    'rmSync',
  ])
  for (const source of [
    "import * as fs from 'node:fs'",
    "import fs from 'node:fs/promises'",
    "const fs = await import('node:fs')",
    "const fs = require('fs')",
    "import { rm } from 'fs'",
  ])
    expect(fileCalls(source), source).toEqual(['*'])
})

test('a call that is not in the table fails, and so does a table that says too much', () => {
  write('tasks/new-task.ts', "import { rmSync } from 'node:fs'\n")
  write('tasks/old-task.ts', "import { lstatSync } from 'node:fs'\n")
  write('tasks/pure.ts', 'export const one = 1\n')
  const { broken, files } = roundTheDoor(root, {
    'tasks/old-task.ts': ['outer', 'lstatSync renameSync'],
    'tasks/gone.ts': ['outer', 'rmSync'],
  })
  expect(files).toBe(3)
  expect(broken.map((b) => b.file.split('/').at(-1)).sort()).toEqual([
    'gone.ts',
    'new-task.ts',
    'old-task.ts',
  ])
})
