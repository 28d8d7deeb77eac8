import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fault, toFault } from '@floe/domain'
import { type Home, makeDirectory } from '../installation/home'
import { ensureEngineUser } from '../installation/os-user'
import { clock, type Progress } from '../progress/progress'
import { buildEngine, enginePrefix } from '../up/engine'
import {
  canInstallPackages,
  installPackages,
  missingEnginePackages,
  missingPackages,
} from '../up/system-packages'
import { engineSuite, engineSuiteNames } from './engine-suite'
import { failedLines, failureLines } from './failed-lines'
import { hostileSuite } from './hostile-suite'
import { inPhases } from './in-phases'
import { infraSuite } from './infra-suite'
import { journeysSuite } from './journeys-suite'
import { machineTimes, shareAtWork } from './machine-times'
import { readmeSuite } from './readme-suite'
import { type RememberedRun, rememberedLine } from './remembered-runs'
import { staticSuites } from './static-suites'
import { add, type Counts, countsLine, none, type Suite, type SuiteContext } from './suite'
import { makeTemporaryDirectory, removeTemporaryDirectory } from './temporary-directory'
import { type FileTime, slowest } from './test-files'
import { launcherSuite, packagesSuite, unitSuite } from './vitest-suites'

/** All of them, those that take longest first where two run at a time. */
export const suites: Suite[] = [
  ...staticSuites,
  readmeSuite,
  packagesSuite,
  hostileSuite,
  unitSuite,
  engineSuite,
  journeysSuite,
  launcherSuite,
  infraSuite,
]

/** `remembered` is of a suite that was not run: none of it is in the counts. */
export type SuiteResult = Counts & {
  name: string
  seconds: number
  log: string
  remembered?: RememberedRun
  /** Test files that a quick run left to the complete one, by room, of how many. */
  leftOut: { room: string; files: number; of: number }[]
}
export type TestResult = Counts & {
  suites: SuiteResult[]
  seconds: number
  slowest: FileTime[]
  flaky: string[]
  /** What failed, a line for each: `suite: file > test: message`. */
  failures: string[]
}

/** How many of the slowest test files are named at the end. */
const SLOWEST = 10

/** Runs a thing one at a time, in the order asked for: apt must not meet itself. */
function inTurn() {
  let last: Promise<unknown> = Promise.resolve()
  return <T>(run: () => Promise<T>): Promise<T> => {
    const next = last.then(run, run)
    last = next.catch(() => {})
    return next
  }
}

/** How suites are run. */
export type RunOptions = {
  /** A complete run: also those whose green run is remembered, and every file of those that take long. */
  all: boolean
  /** A file of tests that failed is run again, once its suite has ended. */
  secondTry: boolean
}

/** Runs suites as `inPhases` orders them. */
export async function runSuites(
  home: Home,
  chosen: ChosenSuite[],
  progress: Progress,
  options: RunOptions,
): Promise<TestResult> {
  const began = Date.now()
  const stamp = new Date(began).toISOString().replace(/[-:]/g, '').slice(0, 15)
  const logs = join(home.log, `test-${stamp}`)
  makeDirectory(logs)
  progress.say(`logs of the suites: ${logs}`)
  const turn = inTurn()
  const times: FileTime[] = []
  const flaky: string[] = []
  const failures: string[] = []

  const packages =
    (log: (line: string) => void) =>
    (...names: string[]) =>
      turn(async () => {
        const missing = await missingPackages(names)
        if (missing.length === 0) return true
        if (!canInstallPackages()) {
          progress.say(
            `not installed: ${missing.join(' ')}; run as root: apt-get install ${missing.join(' ')}`,
          )
          return false
        }
        try {
          await installPackages(missing, { now: log, log })
          return true
        } catch (error) {
          log(toFault(error).message)
          return false
        }
      })

  let engine: Promise<string> | undefined
  const releaseEngine = (log: (line: string) => void) => {
    engine ??= turn(async () => {
      const missing = await missingEnginePackages()
      if (missing.length > 0 && canInstallPackages()) await installPackages(missing, { now: log, log })
      // an engine that is there already was not built by a run that made its user
      ensureEngineUser()
      return (await enginePrefix()) ?? (await buildEngine('release', { now: log, log }))
    })
    return engine
  }

  const runOne = async ({ suite, more }: ChosenSuite): Promise<SuiteResult> => {
    const started = Date.now()
    const before = machineTimes()
    const logFile = join(logs, `${suite.name}.log`)
    const log = (line: string) => appendFileSync(logFile, `${line}\n`)
    log(`${suite.name}: ${suite.about}`)
    const remembered = options.all || more.length > 0 ? null : (suite.remembered?.() ?? null)
    if (remembered) {
      log(rememberedLine(remembered))
      progress.say(`${suite.name}: ${rememberedLine(remembered)}`)
      return { name: suite.name, ...none, seconds: 0, log: logFile, remembered, leftOut: [] }
    }
    const named: string[] = []
    const leftOut: SuiteResult['leftOut'] = []
    const context: SuiteContext = {
      log,
      logFile,
      say: (line) => {
        log(line)
        progress.say(`${suite.name}: ${line}`)
      },
      more,
      all: options.all,
      enginePrefix: () => releaseEngine(log),
      secondTry: options.secondTry,
      flaky: (line) => {
        context.say(`flaky: ${line}`)
        flaky.push(line)
      },
      failed: (line) => named.push(line),
      leftOut: (room, files, of) => leftOut.push({ room, files, of }),
      took: (file, seconds) => times.push({ file, seconds }),
      packages: packages(log),
    }
    let counts: Counts
    try {
      counts = await suite.run(context)
    } catch (error) {
      const { message, detail } = toFault(error)
      log(`${message}${detail ? `\n${detail}` : ''}`)
      progress.say(`${suite.name}: ${message}`)
      counts = { ...none, failed: 1 }
    }
    const seconds = Math.round((Date.now() - started) / 100) / 10
    progress.say(
      `${suite.name}: ${countsLine(counts)} in ${clock(seconds)}, processors ${shareAtWork(before, machineTimes())} at work${counts.failed > 0 ? ` (see ${logFile})` : ''}`,
    )
    if (counts.failed > 0) {
      const shown = failedLines(readFileSync(logFile, 'utf8'))
      for (const line of shown) progress.say(`  ${line}`)
      failures.push(...failureLines(suite.name, named, shown))
    }
    return { name: suite.name, ...counts, seconds, log: logFile, leftOut }
  }

  const temporary = makeTemporaryDirectory()
  const remove = () => {
    const notRemoved = removeTemporaryDirectory(temporary)
    if (notRemoved !== null) progress.say(`left ${temporary}: ${notRemoved}`)
  }
  process.env.TMPDIR = temporary
  // a signal ends the process while it waits for the suites
  process.once('exit', remove)
  const results = await inPhases(chosen, runOne)
  process.off('exit', remove)
  remove()
  results.sort(
    (a, b) => suites.findIndex((s) => s.name === a.name) - suites.findIndex((s) => s.name === b.name),
  )
  const total = results.reduce<Counts>(
    (sum, { passed, failed, skipped }) => add(sum, { passed, failed, skipped }),
    none,
  )
  const longest = slowest(times, SLOWEST)
  if (longest.length > 0) progress.say('the slowest test files:')
  for (const { file, seconds } of longest) progress.say(`${seconds.toFixed(1).padStart(7)} s  ${file}`)
  const leftOut = leftOutLine(results)
  if (leftOut !== null) progress.say(leftOut)
  // the last of what is said, so that nobody takes the line of counts for the whole of it
  for (const line of flaky) progress.say(`flaky: ${line}`)
  for (const line of failures) progress.say(`failed: ${line}`)
  return {
    ...total,
    suites: results,
    seconds: Math.round((Date.now() - began) / 1000),
    slowest: longest,
    flaky,
    failures,
  }
}

/** What a quick run left to the complete one, in a line; null where that is nothing. */
export function leftOutLine(results: readonly Pick<SuiteResult, 'leftOut'>[]): string | null {
  const rooms = results.flatMap(({ leftOut }) => leftOut).filter(({ files }) => files > 0)
  if (rooms.length === 0) return null
  const said = rooms.map(({ room, files, of }) => `${files} of ${of} of ${room}`)
  return `a quick run; test files that only --all runs: ${said.join(', ')}`
}

/** A suite with the words that are given to it. */
export type ChosenSuite = { suite: Suite; more: string[] }

/**
 * The suites that were asked for; all when no word is given. Words after `engine` that name no suite name what the engine's
 * suite consists of (`engine page_repair`, or one TAP file of it: `engine page_repair/011_tls`). `more` is what followed "--": it needs exactly one suite.
 */
export function chooseSuites(words: string[], more: string[] = []): ChosenSuite[] {
  const names: string[] = []
  const ofEngine: string[] = []
  for (const word of words) {
    if (suites.some((s) => s.name === word)) names.push(word)
    else if (!names.includes(engineSuite.name)) throw noSuite(word)
    else if (engineSuiteNames().includes(word.split('/')[0] as string)) ofEngine.push(word)
    else
      throw fault('usage.suite', `there is no suite "${word}", and the engine has no tests of that name`, {
        hint: `Suites: ${suites.map((s) => s.name).join(', ')}. Of the engine: ${engineSuiteNames().join(', ')}.`,
      })
  }
  const chosen = names.length === 0 ? suites : suites.filter((s) => names.includes(s.name))
  if (more.length > 0 && chosen.length !== 1)
    throw fault('usage.suite', 'arguments after "--" need exactly one suite', {
      hint: 'Example: ./floe test unit -- scram',
    })
  return chosen.map((suite) => ({ suite, more: suite === engineSuite ? [...ofEngine, ...more] : more }))
}

const noSuite = (word: string) =>
  fault('usage.suite', `there is no suite "${word}"`, {
    hint: engineSuiteNames().includes(word)
      ? `It is one of the engine's: ./floe test engine ${word}`
      : `Suites: ${suites.map((s) => s.name).join(', ')}.`,
  })
