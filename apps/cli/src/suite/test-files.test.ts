import { expect, test } from 'vitest'
import { engineTimes } from './engine-suite'
import {
  countRun,
  judged,
  type PlaywrightReport,
  type PlaywrightSpec,
  readPlaywright,
  settle,
  slowest,
} from './test-files'

const passed = { name: 'keeps rows', state: 'passed' as const }

test('a test file that cannot be loaded is a failure, not an absence', () => {
  const good = {
    file: '/c/good.test.ts',
    seconds: 1,
    tests: [passed, { name: 'later', state: 'skipped' as const }],
  }
  const broken = { file: '/c/broken.test.ts', seconds: 0, tests: [], fault: 'Cannot find module' }
  expect(countRun({ files: [good, broken], faults: [] })).toEqual({ passed: 1, failed: 1, skipped: 1 })
  expect(countRun({ files: [good], faults: ['an error that nobody caught'] }).failed).toBe(1)
})

test('a program that fails without naming anything has failed once', () => {
  const run = { files: [{ file: '/c/a/good.test.ts', seconds: 1, tests: [passed] }], faults: [] }
  expect(judged(run, 0, '/c')).toEqual({ files: [{ ...run.files[0], file: 'a/good.test.ts' }], faults: [] })
  expect(countRun(judged(run, 1, '/c'))).toEqual({ passed: 1, failed: 1, skipped: 0 })
  expect(countRun(judged({ files: [], faults: [] }, 7, '/c')).failed).toBe(1)
  expect(countRun(judged({ files: [], faults: ['no set-up'] }, 1, '/c')).failed).toBe(1)
})

/** A report as Playwright writes it, of one file whose tests ended in these ways. */
function playwrightReport(...statuses: PlaywrightSpec['tests'][number]['status'][]): PlaywrightReport {
  return {
    config: { rootDir: '/c/e2e/journeys' },
    suites: [
      {
        title: '3-settings.spec.ts',
        file: '3-settings.spec.ts',
        specs: statuses.map((status, i) => ({
          title: `journey ${i}`,
          tests: [
            {
              status,
              results: [
                {
                  duration: 1_500,
                  errors: status === 'unexpected' ? [{ message: '\n\x1b[31mError: gone\x1b[0m\n  at' }] : [],
                },
              ],
            },
          ],
        })),
        suites: [
          {
            title: 'under load',
            file: '3-settings.spec.ts',
            specs: [{ title: 'inner', tests: [{ status: 'expected', results: [] }] }],
          },
        ],
      },
    ],
    errors: [],
  }
}

test('a journey that passed only when repeated has failed, and so has a run that could not begin', () => {
  const run = readPlaywright(playwrightReport('expected', 'unexpected', 'flaky', 'skipped'))
  expect(countRun(run)).toEqual({ passed: 2, failed: 2, skipped: 1 })
  expect(run.files[0]).toMatchObject({ file: '/c/e2e/journeys/3-settings.spec.ts', seconds: 6 })
  expect(run.files[0]?.tests).toContainEqual({ name: 'journey 1', state: 'failed', message: 'Error: gone' })
  expect(run.files[0]?.tests).toContainEqual({ name: 'under load > inner', state: 'passed' })
  expect(
    countRun(readPlaywright({ ...playwrightReport(), suites: [], errors: [{ message: 'no browser' }] }))
      .failed,
  ).toBe(1)
})

test('the slowest files of all suites are named, the slowest first', async () => {
  const times = engineTimes(
    [
      'regress                      229 passed, 0 failed, 0 skipped',
      'regress                      took 95 s',
      'page_repair/011_tls          took 12 s',
      'page_repair-tap              105 passed, 0 failed, 0 skipped',
      '1999 passed, 0 failed, 1 skipped',
    ].join('\n'),
  )
  expect(times).toEqual([
    { file: 'engine regress', seconds: 95 },
    { file: 'engine page_repair/011_tls', seconds: 12 },
  ])
  const took = (file: string, seconds: number) => times.push({ file, seconds })
  const files = [{ file: 'apps/agent/test/standby.test.ts', seconds: 60.5, tests: [passed] }]
  const quiet = { log: () => {}, say: () => {}, flaky: () => {}, failed: () => {}, secondTry: false }
  const again = async () => ({ files: [], faults: [] })
  const counts = await settle({ ...quiet, took }, [
    { files, faults: [], again },
    { files: [], faults: ['no set-up'], again },
  ])
  expect(counts).toEqual({ passed: 1, failed: 1, skipped: 0 })
  expect(slowest(times, 2).map(({ file }) => file)).toEqual([
    'engine regress',
    'apps/agent/test/standby.test.ts',
  ])
})
