import { expect, test } from 'vitest'
import { bothTries, type RepeatableRun } from './second-try'
import { countRun, settle, type TestFile, type TestRun } from './test-files'

const passed = (name: string) => ({ name, state: 'passed' as const })
const failed = (name: string, message = 'not seen in 15 s') => ({ name, state: 'failed' as const, message })
const skipped = (name: string) => ({ name, state: 'skipped' as const })
const fileOf = (tests: TestFile['tests'], fault?: string): TestFile => ({
  file: 'apps/agent/test/fence.test.ts',
  seconds: 3,
  tests,
  ...(fault && { fault }),
})
const runOf = (...files: TestFile[]): TestRun => ({ files, faults: [] })
const countOf = (first: TestFile, second: TestRun) => countRun(runOf(bothTries(first, second).file))

test('what passes at the second try counts as passed, and is named with what it failed with', () => {
  const first = fileOf([passed('a'), failed('b'), failed('c', 'gone'), skipped('d')])
  const second = runOf(fileOf([passed('a'), passed('b'), failed('c'), skipped('d')]))
  expect(countOf(first, second)).toEqual({ passed: 2, failed: 1, skipped: 1 })
  expect(bothTries(first, second).flaky).toEqual([
    'apps/agent/test/fence.test.ts > b: failed once with not seen in 15 s, passed at the second try',
  ])
})

test('what is not seen to pass has failed', () => {
  const first = fileOf([passed('a'), failed('b')])
  const failing = { passed: 1, failed: 1, skipped: 0 }
  expect(countOf(first, runOf(fileOf([passed('a'), skipped('b')])))).toEqual(failing)
  expect(countOf(first, runOf(fileOf([passed('a')])))).toEqual(failing)
  expect(countOf(first, runOf())).toEqual(failing)
  // a second run that failed as a whole says nothing of its tests
  const stray = { ...runOf(fileOf([passed('a'), passed('b')])), faults: ['an error that nobody caught'] }
  expect(countOf(first, stray)).toEqual(failing)
  expect(bothTries(first, stray).flaky).toEqual([])
})

test('what failed only at the second try is named as well', () => {
  const both = bothTries(
    fileOf([passed('a'), failed('b')]),
    runOf(fileOf([failed('a', 'too late'), passed('b')])),
  )
  expect(countRun(runOf(both.file))).toEqual({ passed: 2, failed: 0, skipped: 0 })
  expect(both.flaky).toEqual([
    'apps/agent/test/fence.test.ts > a: passed, and failed at the second try with too late',
    'apps/agent/test/fence.test.ts > b: failed once with not seen in 15 s, passed at the second try',
  ])
})

test('what the first run was not asked for is not counted by the second', () => {
  const first = fileOf([skipped('a'), failed('b')])
  const second = runOf(fileOf([failed('a'), passed('b'), passed('c')]))
  expect(countOf(first, second)).toEqual({ passed: 1, failed: 0, skipped: 1 })
})

test('tests of one name are told apart by their order', () => {
  const both = bothTries(
    fileOf([passed('each'), failed('each', 'second of them')]),
    runOf(fileOf([passed('each'), failed('each', 'again')])),
  )
  expect(countRun(runOf(both.file))).toEqual({ passed: 1, failed: 1, skipped: 0 })
  expect(both.flaky).toEqual([])
})

test('a file that could not be loaded, or whose hook failed, is judged by its second run', () => {
  const whole = runOf(fileOf([passed('a'), failed('b'), skipped('c')]))
  for (const first of [
    fileOf([], 'no engine'),
    fileOf([skipped('a'), skipped('b'), skipped('c')], 'no engine'),
  ]) {
    expect(countOf(first, whole)).toEqual({ passed: 1, failed: 1, skipped: 1 })
    expect(bothTries(first, whole).flaky).toEqual([
      'apps/agent/test/fence.test.ts: failed once with no engine, passed at the second try',
    ])
  }
  expect(countOf(fileOf([], 'no engine'), runOf(fileOf([], 'no engine'))).failed).toBe(1)
  // what failed stays failed where the second run did not come to it
  const hook = runOf(fileOf([skipped('a'), skipped('b')], 'no engine'))
  expect(countOf(fileOf([passed('a'), failed('b')]), hook)).toEqual({ passed: 1, failed: 1, skipped: 0 })
})

/** A suite with so many failed files, each of which passes when it is run again; and what is said of it. */
async function suiteOf(failing: number, secondTry: boolean) {
  const flaky: string[] = []
  const again: string[] = []
  const files = Array.from({ length: failing }, (_, i) => ({
    ...fileOf([failed('b')]),
    file: `${i}.test.ts`,
  }))
  const good = { ...fileOf([passed('a')]), file: 'good.test.ts' }
  const run: RepeatableRun = {
    files: [...files, good],
    faults: [],
    again: async (file) => {
      again.push(file)
      return runOf({ ...fileOf([passed('b')]), file })
    },
  }
  const said: string[] = []
  const named: string[] = []
  const context = {
    secondTry,
    log: () => {},
    took: () => {},
    say: (line: string) => said.push(line),
    flaky: (line: string) => flaky.push(line),
    failed: (line: string) => named.push(line),
  }
  return { counts: await settle(context, [run]), flaky, again, said, named }
}

test('only files that failed are run again, and without the flag none', async () => {
  expect(await suiteOf(2, true)).toMatchObject({
    counts: { passed: 3, failed: 0, skipped: 0 },
    flaky: [expect.stringMatching(/^0\.test\.ts > b: /), expect.stringMatching(/^1\.test\.ts > b: /)],
    again: ['0.test.ts', '1.test.ts'],
    named: [],
  })
  expect(await suiteOf(2, false)).toMatchObject({
    counts: { passed: 1, failed: 2, skipped: 0 },
    flaky: [],
    again: [],
    named: ['0.test.ts > b: not seen in 15 s', '1.test.ts > b: not seen in 15 s'],
  })
})

test('many failures are no accident: nothing is tried again', async () => {
  expect(await suiteOf(6, true)).toMatchObject({
    counts: { passed: 1, failed: 6 },
    again: [],
    said: [expect.stringContaining('6 files failed')],
  })
})

test('what fails outside of any file is not mended by a second try', async () => {
  const run = { files: [], faults: ['no set-up'], again: async () => runOf() }
  const named: string[] = []
  const context = { secondTry: true, log: () => {}, took: () => {}, say: () => {}, flaky: () => {} }
  const failed = (line: string) => named.push(line)
  expect(await settle({ ...context, failed }, [run])).toEqual({ passed: 0, failed: 1, skipped: 0 })
  expect(named).toEqual(['no set-up'])
})
