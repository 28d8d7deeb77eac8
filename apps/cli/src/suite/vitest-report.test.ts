import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { TestRun } from './test-files'
import { vitest } from './vitest-suites'

const checkout = resolve(import.meta.dirname, '../../../..')
let room: string
beforeAll(() => {
  vi.stubEnv('FLOE_CHECKOUT', checkout)
  room = mkdtempSync(join(tmpdir(), 'floe-vitest-report-'))
  symlinkSync(join(checkout, 'node_modules'), join(room, 'node_modules'))
})
afterAll(() => {
  vi.unstubAllEnvs()
  rmSync(room, { recursive: true, force: true })
})

/** What a run of these files comes to, by the last part of their names. */
async function runOf(files: Record<string, string>): Promise<TestRun> {
  for (const [name, text] of Object.entries(files))
    writeFileSync(
      join(room, name),
      `import { beforeAll, describe, expect, test } from 'vitest'\nconst slow = () => new Promise((done) => setTimeout(done, 300))\n${text}`,
    )
  const run = await vitest({ logFile: join(room, 'log'), more: Object.keys(files) }, room)
  for (const name of Object.keys(files)) rmSync(join(room, name))
  return run
}
const named = (run: TestRun, name: string) => run.files.find(({ file }) => file.endsWith(name))

test('what each file came to: its tests, its time with hooks, and why it failed as a whole', async () => {
  const run = await runOf({
    'plain.test.ts': `beforeAll(slow)
      describe('rows', () => {
        test('are kept', () => {})
        test('are counted', () => expect(1).toBe(2))
        test.skip('are sorted', () => {})
      })`,
    'hook.test.ts': `describe('with an engine', () => {
        beforeAll(() => { throw new Error('no engine') })
        test('answers', () => {})
      })`,
    'broken.test.ts': `import './nothing-of-that-name'\ntest('never seen', () => {})`,
  })
  expect(run.faults).toEqual([])
  const plain = named(run, 'plain.test.ts')
  expect(plain?.tests).toEqual([
    { name: 'rows > are kept', state: 'passed' },
    { name: 'rows > are counted', state: 'failed', message: expect.stringContaining('expected 1 to be 2') },
    { name: 'rows > are sorted', state: 'skipped' },
  ])
  expect(plain?.seconds).toBeGreaterThan(0.2)
  expect(plain?.fault).toBeUndefined()
  expect(named(run, 'hook.test.ts')).toMatchObject({
    tests: [{ name: 'with an engine > answers', state: 'skipped' }],
    fault: 'no engine',
  })
  expect(named(run, 'broken.test.ts')).toMatchObject({
    tests: [],
    fault: expect.stringContaining('nothing-of-that-name'),
  })
}, 60_000)

test('an error that nobody caught fails a run whose tests all passed', async () => {
  const run = await runOf({
    'stray.test.ts': `test('passes', async () => { setTimeout(() => { throw new Error('stray') }, 1); await slow() })`,
  })
  expect(named(run, 'stray.test.ts')?.tests).toEqual([{ name: 'passes', state: 'passed' }])
  expect(run.faults).toEqual(['stray'])
}, 60_000)
