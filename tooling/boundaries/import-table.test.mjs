import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { importRooms, importTableProblems } from './import-table.mjs'

let root
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'floe-imports-'))
})
afterEach(() => rmSync(root, { recursive: true }))

/** A tree with these folders, whose table has these rows. */
function tree(folders, rows) {
  for (const folder of folders) mkdirSync(join(root, folder), { recursive: true })
  const table = ['| room | may import |', '|---|---|', ...rows]
  writeFileSync(join(root, 'ARCHITECTURE.md'), `# Rules\n${table.join('\n')}\n\n| apps | another table |\n`)
  return root
}

const folders = ['packages/domain', 'packages/host', 'packages/ui', 'apps/cli', 'e2e']

test('a row says what may be imported, and of what only the types', () => {
  const rows = [
    '| domain, host | nothing |',
    '| ui | domain (words, numbers), host (types of files) |',
    '| cli (root) | ui, domain |',
    '| e2e | nothing |',
  ]
  expect(importTableProblems(tree(folders, rows))).toEqual([])
  expect(importRooms(root)).toEqual({
    'packages/domain': { code: [], types: [] },
    'packages/host': { code: [], types: [] },
    'packages/ui': { code: ['packages/domain'], types: ['packages/host'] },
    'apps/cli': { code: ['packages/ui', 'packages/domain'], types: [] },
    e2e: { code: [], types: [] },
  })
})

test('every folder has one row, every row a folder, and no row names a room without one', () => {
  const rows = ['| domain | nothing |', '| gone | domain |', '| cli, domain | domain, every |']
  expect(importTableProblems(tree(folders, rows))).toEqual([
    'packages/host is a folder without a row',
    'packages/ui is a folder without a row',
    'e2e is a folder without a row',
    'gone is a row without a folder',
    'cli may import every, which has no row',
    'domain has two rows',
    'domain may import every, which has no row',
  ])
})

test('what could be read as more than it says is refused', () => {
  tree(['apps/cli', 'packages/ui'], ['| ui | nothing |', '| cli | ui (only types) |'])
  expect(importTableProblems(root)).toEqual([
    'cli may import ui: "types" has to stand first in the parentheses',
  ])
  mkdirSync(join(root, 'apps/ui'))
  expect(() => importRooms(root)).toThrow('two folders are called "ui"')
})

test('a document without the table is no permission', () => {
  writeFileSync(join(root, 'ARCHITECTURE.md'), '# Rules\n')
  expect(() => importRooms(root)).toThrow('has no table')
})

test('the table of this checkout names every folder', () => {
  expect(importTableProblems(join(import.meta.dirname, '../..'))).toEqual([])
})
