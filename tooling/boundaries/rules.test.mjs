import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { brokenRules } from './cruise.mjs'
import { agentRooms } from './rules.mjs'

const trees = []
afterEach(() => {
  for (const tree of trees.splice(0)) rmSync(tree, { recursive: true, force: true })
})

/** A tree of the given files; each is an empty module unless it has text. */
function tree(files) {
  const root = mkdtempSync(join(tmpdir(), 'floe-boundaries-'))
  trees.push(root)
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  return root
}

const domain = { 'packages/domain/src/index.ts': 'export const a = 1\nexport type A = number\n' }

test('an allowed import is let through', async () => {
  const root = tree({
    ...domain,
    'apps/agent/src/main.ts': "import { a } from '../../../packages/domain/src/index'\nexport const b = a\n",
  })
  expect((await brokenRules(root)).broken).toEqual([])
})

test('domain imports nothing of ours', async () => {
  const root = tree({
    'packages/domain/src/index.ts': "export { t } from '../../telemetry/src/index'\n",
    'packages/telemetry/src/index.ts': 'export const t = 1\n',
  })
  expect((await brokenRules(root)).broken).toEqual([
    {
      rule: 'packages/domain imports only what ARCHITECTURE.md allows',
      from: 'packages/domain/src/index.ts',
      to: 'packages/telemetry/src/index.ts',
    },
  ])
})

test('an agent that imports the database is found, also when it imports only a type', async () => {
  const db = { 'packages/db/src/index.ts': 'export type Row = { id: string }\n' }
  const root = tree({
    ...db,
    'apps/agent/src/main.ts':
      "import type { Row } from '../../../packages/db/src/index'\nexport type R = Row\n",
  })
  expect((await brokenRules(root)).broken.map((b) => b.rule)).toEqual([
    'apps/agent imports only what ARCHITECTURE.md allows',
  ])
})

test('the command line may import types of the console and none of its code', async () => {
  const web = { 'apps/web/src/server/api.ts': 'export type Api = number\nexport const code = 1\n' }
  const cli = (kind) => ({
    'apps/cli/src/main.ts': `import ${kind} from '../../web/src/server/api'\nexport type B = number\n`,
  })
  expect((await brokenRules(tree({ ...web, ...cli('type { Api }') }))).broken).toEqual([])
  expect((await brokenRules(tree({ ...web, ...cli('{ code }') }))).broken.map((b) => b.rule)).toEqual([
    'apps/cli imports only types of apps/web',
  ])
})

test('web may submit operations and not run them', async () => {
  const operations = {
    'packages/operations/src/index.ts': 'export const run = 1\n',
    'packages/operations/src/submit.ts': 'export const submit = 1\n',
  }
  const web = (file) => ({
    'apps/web/src/server/router.ts': `export * from '../../../../packages/operations/src/${file}'\n`,
  })
  expect((await brokenRules(tree({ ...operations, ...web('submit') }))).broken).toEqual([])
  expect((await brokenRules(tree({ ...operations, ...web('index') }))).broken.map((b) => b.rule)).toEqual([
    'web submits operations and runs none',
  ])
})

test('a circle of imports is found', async () => {
  const root = tree({
    'packages/domain/src/one.ts': "import { two } from './two'\nexport const one = two\n",
    'packages/domain/src/two.ts': "import { one } from './one'\nexport const two = one\n",
  })
  expect((await brokenRules(root)).broken.map((b) => b.rule)).toContain('no circle of imports')
})

/** A module of the agent that imports another one. */
const agentImport = (from, what, to) => ({
  [`apps/agent/src/${from}`]: `import ${what} from '${to}'\nexport type Used = 1\nexport const used = 1\n`,
})
const inAgent = async (...files) => (await brokenRules(tree(Object.assign({}, ...files)))).broken

test('a room of the agent imports the rooms below it and no other', async () => {
  const body = { 'apps/agent/src/tasks/instance/stop.ts': 'export const stop = 1\nexport type Stop = 1\n' }
  const layout = { 'apps/agent/src/engine/directory/layout.ts': 'export const layout = 1\n' }
  expect(
    await inAgent(layout, agentImport('engine/process/log.ts', '{ layout }', '../directory/layout')),
  ).toEqual([])
  for (const [room, file, to, what] of [
    ['engine/process', 'end.ts', '../../tasks/instance/stop', '{ stop }'],
    ['engine/process', 'end.ts', '../../tasks/instance/stop', 'type { Stop }'],
    ['tasks/runner', 'runner.ts', '../instance/stop', '{ stop }'],
    ['router', 'task.ts', '../tasks/instance/stop', '{ stop }'],
    ['host', 'tree.ts', '../tasks/instance/stop', '{ stop }'],
  ])
    expect(await inAgent(body, agentImport(`${room}/${file}`, what, to)), room).toMatchObject([
      { from: `apps/agent/src/${room}/${file}`, rule: expect.stringContaining(`${room} of the agent`) },
    ])
})

test('a room of the engine knows of an instance the type only', async () => {
  const instance = { 'apps/agent/src/engine/instance.ts': 'export class Instance {}\n' }
  const reload = (what) => agentImport('engine/process/reload.ts', what, '../instance')
  expect(await inAgent(instance, reload('type { Instance }'))).toEqual([])
  expect((await inAgent(instance, reload('{ Instance }'))).map((b) => b.rule)).toEqual([
    'rooms of the engine know of an instance only the type',
  ])
})

test('every room of the agent is in the table, and the rooms go one way', () => {
  const sources = readdirSync(join(import.meta.dirname, '../../apps/agent/src'), {
    recursive: true,
    withFileTypes: true,
  })
  const folders = new Set(
    sources
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => relative(join(import.meta.dirname, '../../apps/agent/src'), entry.parentPath)),
  )
  // what binds rooms together lies above them
  for (const above of ['', 'engine', 'tasks']) folders.delete(above)
  expect(Object.keys(agentRooms).sort()).toEqual([...folders].sort())
  const seen = ['tasks/bodies.ts']
  for (const [room, others] of Object.entries(agentRooms)) {
    for (const other of others)
      expect(
        seen.some((name) => name === other || name.startsWith(`${other}/`)),
        `${room} → ${other}`,
      ).toBe(true)
    seen.push(room)
  }
})
