import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { countPlaywright } from './journeys-suite'
import { mentionedPaths, missingPaths } from './readme-suite'
import { chooseSuites, suites } from './run-suites'
import { countsLine, parseCounts } from './suite'
import { countVitest } from './vitest-suites'

test('the last line of counts is read, and written in the same form', () => {
  expect(parseCounts('1 passed, 0 failed, 0 skipped\nnoise\n12 passed, 3 failed, 4 skipped\n')).toEqual({
    passed: 12,
    failed: 3,
    skipped: 4,
  })
  expect(parseCounts('all passed')).toBeNull()
  expect(countsLine({ passed: 12, failed: 3, skipped: 4 })).toBe('12 passed, 3 failed, 4 skipped')
})

test('a test file that cannot be loaded is a failure, not an absence', () => {
  const report = {
    success: false,
    numPassedTests: 3,
    numFailedTests: 0,
    numPendingTests: 1,
    numTodoTests: 0,
    testResults: [
      { status: 'failed', assertionResults: [] },
      { status: 'passed', assertionResults: [1, 2, 3] },
    ],
  }
  expect(countVitest(report)).toEqual({ passed: 3, failed: 1, skipped: 1 })
  expect(countVitest({ ...report, testResults: [] }).failed).toBe(1)
  expect(countVitest({ ...report, success: true, testResults: [] })).toEqual({
    passed: 3,
    failed: 0,
    skipped: 1,
  })
})

test('a journey that passed only when repeated has failed, and so has a run that could not begin', () => {
  expect(
    countPlaywright({ stats: { expected: 5, unexpected: 1, flaky: 1, skipped: 2 }, errors: [] }),
  ).toEqual({ passed: 5, failed: 2, skipped: 2 })
  expect(
    countPlaywright({ stats: { expected: 0, unexpected: 0, flaky: 0, skipped: 0 }, errors: [{}] }).failed,
  ).toBe(1)
})

test('a document that names a file that is not there is found', () => {
  const root = mkdtempSync(join(tmpdir(), 'floe-readme-'))
  try {
    mkdirSync(join(root, 'apps/x/src/tasks'), { recursive: true })
    writeFileSync(join(root, 'apps/x/src/tasks/start.ts'), '')
    const document = 'apps/x/README.md'
    writeFileSync(
      join(root, document),
      'See `src/tasks/`, `tasks/start.ts`, `start.ts`, `apps/x`, `bin/psql`, `dist/main.js`; not `src/gone.ts` or `gone.ts`.\n```\n`src/in-a-listing.ts`\n```\n',
    )
    expect(missingPaths(root, document, [document, 'apps/x/src/tasks/start.ts'])).toEqual([
      'src/gone.ts',
      'gone.ts',
    ])
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})

test('words in backticks that are no paths are left alone', () => {
  expect(
    mentionedPaths('`./floe up`, `read/write`, `a/<id>/b`, `/var/lib`, `name=value`, `pg_settings`'),
  ).toEqual(['read/write'])
})

test('an unknown suite is a mistake of the caller', () => {
  expect(chooseSuites([])).toBe(suites)
  expect(chooseSuites(['types', 'lint']).map((s) => s.name)).toEqual(['lint', 'types'])
  expect(() => chooseSuites(['nothing'])).toThrow('there is no suite "nothing"')
})
