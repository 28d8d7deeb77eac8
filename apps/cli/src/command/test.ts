import type { Command } from 'commander'
import { currentHome } from '../installation/home'
import { countsLine } from '../suite/suite'
import { progressOf } from './up'
import { verb } from './verb'

type Options = { json?: boolean; list?: boolean; all?: boolean; long?: boolean; secondTry?: boolean }

export function addTest(program: Command): void {
  verb(
    program,
    'test [suites...]',
    'run the test suites',
    'Runs the named suites, or all of them, on private ports and directories, and installs what they need as "up" does. Without names and --all it is a quick run: of the tests that run instances or a browser only chosen files run, and the engine’s suite and the tests of the agent and the controller are skipped, and not counted, while nothing that they depend on has changed since they last passed. How many test files it left out is said at the end. The ten slowest test files, and each failed test with the first line of its message, are listed at the end. The last line is "N passed, N failed, N skipped"; exit status 1 when any failed. After "engine" its parts may be named ("engine page_repair"; "./floe engine test --help" names them). What follows "--" is given to the one suite named.',
  )
    .option('--list', 'only list the suites')
    .option(
      '--all',
      'a complete run: every file of every suite, also what has passed and has not changed since',
    )
    .option(
      '--long',
      'a complete run with the long form of tests that have one, among others more crashes of torn pages, a kill at every step of every kind of operation, fuzzers with a million inputs',
    )
    .option(
      '--second-try',
      'run a test file that failed again, alone, once its suite has ended (not of engine and hostile); what passes then counts as passed and is named as flaky',
    )
    .action(async (words: string[], o: Options) => {
      const { json, list, all, long, secondTry } = o
      const { chooseSuites, runSuites, suites } = await import('../suite/run-suites')
      if (list) {
        const known = suites.map(({ name, about }) => ({ name, about }))
        process.stdout.write(
          json
            ? `${JSON.stringify(known, null, 2)}\n`
            : known.map((s) => `${s.name.padEnd(12)}${s.about}\n`).join(''),
        )
        return
      }
      const dashes = process.argv.indexOf('--')
      const more = dashes < 0 ? [] : process.argv.slice(dashes + 1)
      const chosen = chooseSuites(words.slice(0, words.length - more.length), more)
      // read by the tests themselves, in whatever program runs them
      if (long) process.env.FLOE_TEST_LONG = '1'
      const { progress } = progressOf('test')
      const { endOnSignal } = await import('../suite/end-programs')
      endOnSignal((line) => progress.say(line))
      // who names a suite wants to see it run
      const result = await runSuites(currentHome(), chosen, progress, {
        all: all === true || long === true || words.length > 0,
        secondTry: secondTry === true,
      })
      process.stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : `${countsLine(result)}\n`)
      if (result.failed > 0) process.exitCode = 1
    })
}
