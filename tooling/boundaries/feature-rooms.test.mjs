import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { brokenRules } from './cruise.mjs'
import { tableProblems } from './feature-rooms.mjs'

const trees = []
afterEach(() => {
  for (const tree of trees.splice(0)) rmSync(tree, { recursive: true, force: true })
})

const features = 'apps/web/src/features'

/** A tree with the given rows of the table and the given files below apps/web/src. */
function tree(rows, files) {
  const root = mkdtempSync(join(tmpdir(), 'floe-boundaries-'))
  trees.push(root)
  const table = [
    '| room | what it is for | may import | gives to other rooms |',
    '|---|---|---|---|',
    ...rows,
  ]
  const all = { [`${features}/README.md`]: `# features\n\n${table.join('\n')}\n` }
  for (const [file, text] of Object.entries(files)) all[`apps/web/src/${file}`] = text
  for (const [file, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  return root
}

const rows = [
  '| `console` | the kernel | | `account` |',
  '| `host` | hosts | `console` | |',
  '| `audit` | audit rows | | |',
]
const kernel = {
  'features/console/account.ts': 'export const account = 1\n',
  'features/console/own.ts': 'export const own = 1\n',
}
const uses = (name, from) => `import { ${name} } from '${from}'\nexport const used = ${name}\n`

async function broken(files) {
  const root = tree(rows, { 'features/audit/list.ts': '', 'features/host/list.ts': '', ...kernel, ...files })
  expect(tableProblems(root)).toEqual([])
  return (await brokenRules(root)).broken.map((b) => b.rule)
}

test('a room imports what its row allows and the other room gives', async () => {
  expect(await broken({ 'features/host/list.ts': uses('account', '../console/account') })).toEqual([])
})

test('a room that its row does not name is refused', async () => {
  expect(await broken({ 'features/audit/list.ts': uses('account', '../console/account') })).toEqual([
    'feature audit imports only what apps/web/src/features/README.md allows',
  ])
})

test('a file that a room does not give is refused', async () => {
  expect(await broken({ 'features/host/list.ts': uses('own', '../console/own') })).toEqual([
    'feature console gives only what apps/web/src/features/README.md lists',
  ])
})

test('pages import any room; the server, none', async () => {
  expect(await broken({ 'app/page.ts': uses('own', '../features/console/own') })).toEqual([])
  expect(await broken({ 'server/rows.ts': uses('own', '../features/console/own') })).toEqual([
    'only pages and features import features',
  ])
})

test('a feature imports only the API of the server', async () => {
  const server = {
    'server/api.ts': 'export const api = 1\n',
    'server/ports.ts': 'export const ports = 1\n',
  }
  expect(await broken({ ...server, 'features/host/list.ts': uses('api', '../../server/api') })).toEqual([])
  expect(await broken({ ...server, 'features/host/list.ts': uses('ports', '../../server/ports') })).toEqual([
    'a feature imports only the API of the server',
  ])
})

test('the table names every folder, and only rooms above a row and files that exist', () => {
  const wrong = [
    '| `console` | the kernel | `host` | `nothing` |',
    '| `host` | hosts | | |',
    '| `gone` | an old room | | |',
  ]
  expect(
    tableProblems(tree(wrong, { ...kernel, 'features/host/list.ts': '', 'features/audit/a.ts': '' })),
  ).toEqual([
    'audit is a folder without a row',
    'console may import host, which is not a row above it',
    'console gives nothing, which does not exist',
    'gone is a row without a folder',
  ])
})
