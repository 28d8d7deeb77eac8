import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { engineFailures } from './engine-suite'

const tools = resolve(import.meta.dirname, '../../../../engine/tools')
let room: string
beforeAll(() => {
  room = mkdtempSync(join(tmpdir(), 'floe-engine-suite-'))
})
afterAll(() => rmSync(room, { recursive: true, force: true }))

/** Runs functions of the engine's tool on what runs of suites left: "judge" for each, then the end of its output. */
function summaryOf(...runs: { part: string; status: number; log: string[]; diffs?: string[] }[]): string {
  const calls = runs.map(({ part, status, log, diffs }, i) => {
    const [logFile, diffFile] = [join(room, `${i}.log`), join(room, `${i}.diffs`)]
    writeFileSync(logFile, `${log.join('\n')}\n`)
    if (diffs) writeFileSync(diffFile, `${diffs.join('\n')}\n`)
    return `judge suite-${i} '${part}' ${status} ${logFile} ${diffs ? diffFile : ''}; print_result suite-${i}`
  })
  const run = join(room, 'run')
  rmSync(run, { recursive: true, force: true })
  for (const name of ['results', 'failures']) mkdirSync(join(run, name), { recursive: true })
  const script = `set -euo pipefail; source ${tools}/suites.sh; run_dir=${run}; prefix=/nonexistent
    ${calls.join('\n')}
    conclude || true`
  return execFileSync('bash', ['-c', script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}

test('a failed TAP test is named by its file, with its diagnostics, wherever prove let them through', () => {
  const output = summaryOf({
    part: 'page_repair/011_tls',
    status: 1,
    log: [
      'ok 1 - the first',
      "#   Failed test 'the page is repaired'",
      '#   at t/011_tls.pl line 99.',
      "#          got: 'torn'",
      "#     expected: 'whole'",
      'ok 2 - another',
      'not ok 3 - the page is repaired',
      'ok 4 - the last',
      '1..4',
      '# Looks like you failed 1 test of 4.',
    ],
  })
  expect(output).toContain('suite-0                      3 passed, 1 failed, 0 skipped\n')
  expect(output).toContain(
    [
      'failed: page_repair/011_tls: not ok 3 - the page is repaired',
      "  #   Failed test 'the page is repaired'",
      '  #   at t/011_tls.pl line 99.',
      "  #          got: 'torn'",
      "  #     expected: 'whole'",
      '3 passed, 1 failed, 0 skipped',
      '',
    ].join('\n'),
  )
  expect(engineFailures(output)).toEqual([
    "page_repair/011_tls: not ok 3 - the page is repaired: at t/011_tls.pl line 99. got: 'torn' expected: 'whole'",
  ])
})

test('a TAP file that died without a failed test is named with its last words, whatever else ran', () => {
  const output = summaryOf(
    {
      part: 'page_repair/002_dies',
      status: 2,
      log: ['ok 1 - begins', '# no connection to the server', 'Dubious, test returned 29'],
    },
    { part: 'page_repair/003_good', status: 0, log: ['ok 1 - good', '1..1'] },
    { part: 'page_repair/004_nothing', status: 0, log: [] },
  )
  expect(output).toContain('2 passed, 2 failed, 0 skipped')
  expect(engineFailures(output)).toEqual([
    'page_repair/002_dies: it ended with exit status 2: no connection to the server Dubious, test returned 29',
    'page_repair/004_nothing: it ended with exit status 0, without a test',
  ])
})

test('a failed test of pg_regress is shown with the first lines of its difference, and of no other', () => {
  const difference = (name: string) => [
    `diff -U3 /in/expected/${name}.out /out/results/${name}.out`,
    `--- /in/expected/${name}.out`,
    ...Array.from({ length: 100 }, (_, i) => `-${name} ${i}`),
  ]
  const output = summaryOf({
    part: 'regress',
    status: 1,
    log: ['ok 1         - int4       10 ms', 'not ok 2     + hash_index       12 ms', '1..2'],
    diffs: [...difference('other'), ...difference('hash_index')],
  })
  expect(output).toContain('  -hash_index 17\n1 passed')
  expect(output).not.toMatch(/-hash_index 18|other/)
  expect(engineFailures(output)).toEqual(['regress: not ok 2 + hash_index 12 ms'])
})

test('many failures are cut, and a green run names none', () => {
  const log = Array.from({ length: 50 }, (_, i) => `not ok ${i + 1} - broken`)
  const failures = engineFailures(summaryOf({ part: 'a/001_b', status: 1, log }))
  expect(failures).toHaveLength(11)
  expect(failures.at(-1)).toBe('a/001_b: 40 more')
  const green = summaryOf({ part: 'a/001_b', status: 0, log: ['ok 1 - good', 'ok 2 - other # SKIP why'] })
  expect(green).toContain('1 passed, 0 failed, 1 skipped')
  expect(engineFailures(green)).toEqual([])
})
