import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { engineSuiteKey, systemUnderTest } from './engine-suite-key'
import { RememberedRuns, rememberedLine } from './remembered-runs'

const checkout = resolve(import.meta.dirname, '../../../..')
const green = { passed: 1999, failed: 0, skipped: 1 }
let root: string
let runs: RememberedRuns
const said: string[] = []
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'floe-remembered-'))
  runs = new RememberedRuns(join(root, 'engine-suite.json'))
  said.length = 0
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const write = (path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}
const whole = { whole: true, say: (line: string) => said.push(line) }

/** A checkout with a file in every room that the engine has, and the key of it. */
function checkoutOf() {
  const rooms = readdirSync(join(checkout, 'engine'))
    // the work tree of patches is ignored by git
    .filter((name) => name !== 'src')
    .map((name) =>
      statSync(join(checkout, 'engine', name)).isDirectory() ? `engine/${name}/file` : `engine/${name}`,
    )
  const decisive = [
    ...rooms,
    'engine/modules/page_repair/t/001_first.pl',
    'engine/testkit/perl/Kill.pm',
    'apps/cli/src/suite/engine-suite.ts',
    'apps/cli/src/run-program.ts',
  ]
  for (const path of decisive) write(path, 'first\n')
  write('.gitignore', 'engine/src/\n*.o\n')
  write('apps/web/src/page.ts', 'first\n')
  execFileSync('git', ['init', '-q', root])
  execFileSync('git', ['add', '-A'], { cwd: root })
  return { decisive, key: (system = 'Debian 12') => engineSuiteKey(root, system) }
}

test('a changed, new, removed or differently marked file of the engine changes the key; others do not', () => {
  const { decisive, key } = checkoutOf()
  const first = key()
  expect(first).toMatch(/^[0-9a-f]{64}$/)
  for (const path of decisive) {
    write(path, 'second\n')
    expect(key(), path).not.toBe(first)
    write(path, 'first\n')
    expect(key(), path).toBe(first)
  }
  const anew = 'engine/modules/page_repair/t/002_untracked.pl'
  write(anew, '')
  expect(key()).not.toBe(first)
  rmSync(join(root, anew))
  const tool = join(root, 'engine/tools/file')
  chmodSync(tool, 0o755)
  expect(key()).not.toBe(first)
  chmodSync(tool, 0o644)
  rmSync(tool)
  const without = key()
  expect(without).not.toBe(first)
  symlinkSync('../README.md', tool)
  expect([first, without]).not.toContain(key())
  rmSync(tool)
  write('engine/tools/file', 'first\n')
  write('engine/modules/page_repair/page_repair.o', 'built')
  write('engine/src/configure', 'imported')
  write('apps/web/src/page.ts', 'second\n')
  write('apps/cli/src/suite/engine-suite.test.ts', '')
  expect(key()).toBe(first)
  expect(key('Debian 13')).not.toBe(first)
})

test('without git nothing is known to be the same', () => {
  write('engine/upstream.json', '{}')
  expect(engineSuiteKey(root, '')).toBeNull()
})

test('the system under test names release, kernel, compiler, C library and packages', () => {
  const system = systemUnderTest(checkout)
  expect(system).toMatch(/^ID=/m)
  expect(system).toMatch(/glibc \d/)
  expect(system).toMatch(/^perl \d.* ii/m)
})

test('a whole green run is remembered, and shown as what it is', async () => {
  const now = () => new Date('2026-11-23T11:42:16Z')
  expect(
    await runs.remembering(
      () => 'k',
      { ...whole, now },
      async () => green,
    ),
  ).toEqual(green)
  const known = runs.find('k')
  expect(known).toEqual({ key: 'k', passed: 1999, skipped: 1, at: '2026-11-23T11:42:16.000Z' })
  expect(known && rememberedLine(known)).toMatch(
    /^remembered: 1999 passed on 2026-11-23 11:42 UTC \(1 skipped;/,
  )
  expect(runs.find('another')).toBeNull()
})

test('neither parts, nor a failed, an empty, an unnamed or an overtaken run is remembered', async () => {
  await runs.remembering(
    () => 'parts',
    { ...whole, whole: false },
    async () => green,
  )
  await runs.remembering(
    () => 'failed',
    whole,
    async () => ({ ...green, failed: 1 }),
  )
  await runs.remembering(
    () => 'empty',
    whole,
    async () => ({ passed: 0, failed: 0, skipped: 0 }),
  )
  await runs.remembering(
    () => null,
    whole,
    async () => green,
  )
  let edited = 'as it began'
  await runs.remembering(
    () => edited,
    whole,
    async () => {
      edited = 'changed meanwhile'
      return green
    },
  )
  for (const key of ['parts', 'failed', 'empty', 'as it began', 'changed meanwhile'])
    expect(runs.find(key), key).toBeNull()
})

test('a failure, of a part too, forgets the green run of the same files', async () => {
  const failed = async () => ({ ...green, failed: 1 })
  for (const run of [whole, { ...whole, whole: false }]) {
    await runs.remembering(
      () => 'k',
      whole,
      async () => green,
    )
    await runs.remembering(
      () => 'other',
      whole,
      async () => green,
    )
    await runs.remembering(() => 'k', run, failed)
    expect(runs.find('k')).toBeNull()
    expect(runs.find('other')).not.toBeNull()
  }
})

test('a run that skips more than the last one is not remembered, and says so', async () => {
  await runs.remembering(
    () => 'before',
    whole,
    async () => green,
  )
  await runs.remembering(
    () => 'k',
    whole,
    async () => ({ ...green, skipped: 2 }),
  )
  expect(runs.find('k')).toBeNull()
  expect(said).toEqual([expect.stringContaining('2 skipped, and 1 in the last run')])
  await runs.remembering(
    () => 'k',
    whole,
    async () => ({ ...green, skipped: 0 }),
  )
  expect(runs.find('k')).toMatchObject({ skipped: 0 })
})

test('of a damaged file nothing is believed', async () => {
  write('engine-suite.json', '[{"key": "k"')
  expect(runs.find('k')).toBeNull()
  await runs.remembering(
    () => 'k',
    whole,
    async () => green,
  )
  expect(runs.find('k')).toMatchObject({ passed: 1999 })
})
