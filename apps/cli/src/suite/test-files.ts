import { join, relative } from 'node:path'
import { type RepeatableRun, triedTwice } from './second-try'
import { add, type Counts, none, type SuiteContext } from './suite'

export type TestState = 'passed' | 'failed' | 'skipped'

/** What a run says of one file of tests. */
export type TestFile = {
  /** Its path. */
  file: string
  seconds: number
  tests: { name: string; state: TestState; message?: string }[]
  /** Why the file as a whole failed although none of its tests did: it could not be loaded, or a hook failed. */
  fault?: string
}

/** One run of a program that runs files of tests. */
export type TestRun = {
  files: TestFile[]
  /** What failed and is no file's: a set-up for all files, an error that nobody caught, an exit status without a reason. */
  faults: string[]
}

/** What a run came to. A file that could not be loaded is a failure though it has no test. */
export function countRun({ files, faults }: TestRun): Counts {
  const counts = { passed: 0, failed: faults.length, skipped: 0 }
  for (const { tests, fault } of files) {
    for (const { state } of tests) counts[state]++
    if (fault !== undefined) counts.failed++
  }
  return counts
}

/** A run with the exit status of its program, which fails it where nothing else did; files are named from `root`. */
export function judged(run: TestRun, status: number, root: string): TestRun {
  const files = run.files.map((file) => ({ ...file, file: relative(root, file.file) }))
  const silent = status !== 0 && countRun(run).failed === 0
  return { files, faults: silent ? [`it ended with exit status ${status}`] : run.faults }
}

/** What failed in a run, a line for each: `file > test: message`. */
export function failuresOf({ files, faults }: TestRun): string[] {
  const ofFile = ({ file, tests, fault }: TestFile) => [
    ...(fault === undefined ? [] : [`${file}: ${fault}`]),
    ...tests
      .filter(({ state }) => state === 'failed')
      .map(({ name, message }) => `${file} > ${name}: ${message ?? 'no message'}`),
  ]
  return [...files.flatMap(ofFile), ...faults]
}

/** What the runs of a suite came to, by a second try too where one is allowed; takes down how long each file took. */
export async function settle(
  context: Pick<SuiteContext, 'log' | 'say' | 'took' | 'failed' | 'flaky' | 'secondTry'>,
  runs: RepeatableRun[],
): Promise<Counts> {
  for (const { files, faults } of runs) {
    for (const { file, seconds } of files) context.took(file, seconds)
    for (const fault of faults) context.log(`failed: ${fault}`)
  }
  const settled = context.secondTry ? await triedTwice(context, runs) : runs
  for (const line of settled.flatMap(failuresOf)) context.failed(line)
  return settled.map(countRun).reduce(add, none)
}

/** The first line of a message, without colours, short enough for one line. */
export function firstLine(message: string): string {
  const line = message
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
    .replace(/\x1b\[[0-9;]*m/g, '')
    .split('\n')
    .map((text) => text.trim())
    .find((text) => text !== '')
  return (line ?? 'no message').slice(0, 300)
}

export type PlaywrightSpec = {
  title: string
  tests: {
    status: 'expected' | 'unexpected' | 'flaky' | 'skipped'
    results: { duration: number; errors: { message?: string }[] }[]
  }[]
}
type PlaywrightSuite = { title: string; file: string; specs?: PlaywrightSpec[]; suites?: PlaywrightSuite[] }
export type PlaywrightReport = {
  config: { rootDir: string }
  suites: PlaywrightSuite[]
  errors: { message?: string }[]
}

const playwrightStates = {
  expected: 'passed',
  unexpected: 'failed',
  // passed only when it was repeated
  flaky: 'failed',
  skipped: 'skipped',
} as const

/** What Playwright's JSON report says of each file of journeys. */
export function readPlaywright(report: PlaywrightReport): TestRun {
  const files = report.suites.map((top): TestFile => {
    const tests: TestFile['tests'] = []
    let milliseconds = 0
    const walk = (suite: PlaywrightSuite, within: string[]) => {
      for (const { title, tests: runs } of suite.specs ?? [])
        for (const { status, results } of runs) {
          for (const { duration } of results) milliseconds += duration
          const state = playwrightStates[status]
          const message = results.flatMap(({ errors }) => errors).find((error) => error.message)?.message
          tests.push({
            name: [...within, title].join(' > '),
            state,
            ...(state === 'failed' && { message: firstLine(message ?? '') }),
          })
        }
      for (const inner of suite.suites ?? []) walk(inner, [...within, inner.title])
    }
    walk(top, [])
    return { file: join(report.config.rootDir, top.file), seconds: milliseconds / 1000, tests }
  })
  return { files, faults: report.errors.map(({ message }) => firstLine(message ?? '')) }
}

export type FileTime = { file: string; seconds: number }

/** The files that ran longest, the longest first. */
export function slowest(times: FileTime[], count: number): FileTime[] {
  return times.toSorted((a, b) => b.seconds - a.seconds).slice(0, count)
}
