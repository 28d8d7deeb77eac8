import { appendFileSync } from 'node:fs'
import { checkoutDirectory } from '../installation/home'
import { type ProgramResult, runProgram } from '../run-program'
import { isEnding } from './end-programs'
import type { RememberedRun } from './remembered-runs'

export type Counts = { passed: number; failed: number; skipped: number }

/** What a suite gets: where to log, and what was prepared for it. */
export type SuiteContext = {
  /** Appends a line to the suite's own log. */
  log: (line: string) => void
  logFile: string
  /** Prints a line for the person who runs the suites, and logs it. */
  say: (line: string) => void
  /** Arguments after `--`, for the one suite that was asked for; of the engine's also the names after `engine`. */
  more: string[]
  /** A complete run: nothing is left out, because it was green before or takes long. */
  all: boolean
  /** Prefix of the release engine. */
  enginePrefix: () => Promise<string>
  /** Whether a file of tests that failed is run again, once its suite has ended. */
  secondTry: boolean
  /** Takes down a test that failed in one of two runs and passed in the other: it is named wherever it counts as passed. */
  flaky: (line: string) => void
  /** Takes down what failed: file, test, and the first line of its message. It is named at the end of the run. */
  failed: (line: string) => void
  /** Takes down how many of a room’s test files a quick run leaves to the complete one, of how many. */
  leftOut: (room: string, files: number, of: number) => void
  /** Takes down how long a file of tests ran. */
  took: (file: string, seconds: number) => void
  /** Installs packages of the distribution where that can be done; answers whether all are there. */
  packages: (...names: string[]) => Promise<boolean>
}

/**
 * `checkout`: it reads files of the checkout, and starts no installation and no instance. `users`: the users of instances on
 * this machine to itself, because it takes whatever runs as one of its own users for something that it left behind. `own`:
 * nothing of others; ports, directories, users and networks are private.
 */
export type Needs = 'checkout' | 'users' | 'own'

export type Suite = {
  name: string
  about: string
  /** What it needs of the machine; see `inPhases`. */
  needs: Needs
  run: (context: SuiteContext) => Promise<Counts>
  /** The green run of before that a run of the whole suite would repeat; null where there is none. */
  remembered?: () => RememberedRun | null
}

export const none: Counts = { passed: 0, failed: 0, skipped: 0 }

export function add(a: Counts, b: Counts): Counts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped }
}

/** The sentence that ends every test command. */
export function countsLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`
}

/** Reads the counts from the last line of that form; null when there is none. */
export function parseCounts(output: string): Counts | null {
  const match = [...output.matchAll(/^(\d+) passed, (\d+) failed, (\d+) skipped$/gm)].at(-1)
  return match ? { passed: Number(match[1]), failed: Number(match[2]), skipped: Number(match[3]) } : null
}

/** Runs a program in the checkout with its output in the suite's log. */
export function runInCheckout(
  { logFile }: Pick<SuiteContext, 'logFile'>,
  file: string,
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<ProgramResult> {
  // the run ends by itself soon
  if (isEnding()) return new Promise(() => {})
  appendFileSync(logFile, `\n$ ${[file, ...args].join(' ')}\n`)
  return runProgram(file, args, {
    cwd: options.cwd ?? checkoutDirectory(),
    env: {
      ...process.env,
      PATH: `${process.execPath.slice(0, process.execPath.lastIndexOf('/'))}:${process.env.PATH}`,
      ...options.env,
    },
    onLine: (line) => appendFileSync(logFile, `${line}\n`),
  })
}
