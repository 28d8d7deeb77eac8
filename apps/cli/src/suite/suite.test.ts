import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { FaultError } from '@floe/domain'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { engineSuiteNames } from './engine-suite'
import { formFaults, mentionedPaths, missingPaths } from './readme-suite'
import { chooseSuites, leftOutLine, suites } from './run-suites'
import { countsLine, parseCounts } from './suite'

const checkout = resolve(import.meta.dirname, '../../../..')
beforeAll(() => {
  vi.stubEnv('FLOE_CHECKOUT', checkout)
})
afterAll(() => {
  vi.unstubAllEnvs()
})

test('the last line of counts is read, and written in the same form', () => {
  expect(parseCounts('1 passed, 0 failed, 0 skipped\nnoise\n12 passed, 3 failed, 4 skipped\n')).toEqual({
    passed: 12,
    failed: 3,
    skipped: 4,
  })
  expect(parseCounts('all passed')).toBeNull()
  expect(countsLine({ passed: 12, failed: 3, skipped: 4 })).toBe('12 passed, 3 failed, 4 skipped')
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

test('a line of prose over 100 columns is found; tables and code blocks are exempt', () => {
  const wide = 'x '.repeat(50)
  const document = [`${wide}y`, 'é'.repeat(100), `| ${wide} |`, '```', `${wide}y`, '```', `- ${wide}`]
  expect(formFaults('docs/guide/x.md', document.join('\n'))).toEqual([
    expect.stringContaining('line 1 '),
    expect.stringContaining('line 7 '),
  ])
  expect(formFaults('docs/decisions/x.md', document.join('\n'))).toEqual([])
})

test('a README of a room is at most a page long', () => {
  const page = 'A line.\n'.repeat(120)
  expect(formFaults('packages/x/README.md', page)).toEqual([])
  expect(formFaults('packages/x/README.md', `${page}One more.\n`)).toEqual([
    expect.stringContaining('it has 121 lines'),
  ])
  expect(formFaults('engine/patches/README.md', `${page}One more.\n`)).toEqual([])
})

test('what a quick run left to the complete one is said in a line, and nothing where it left nothing', () => {
  const ran = (room: string, files: number, of: number) => ({ leftOut: [{ room, files, of }] })
  expect(leftOutLine([{ leftOut: [] }, ran('launcher', 0, 6)])).toBeNull()
  expect(leftOutLine([ran('agent', 20, 104), { leftOut: [] }, ran('journeys', 16, 24)])).toBe(
    'a quick run; test files that only --all runs: 20 of 104 of agent, 16 of 24 of journeys',
  )
})

const namesOf = (...words: string[]) => chooseSuites(words).map(({ suite }) => suite.name)

test('an unknown suite is a mistake of the caller', () => {
  expect(namesOf()).toEqual(suites.map((s) => s.name))
  expect(namesOf('types', 'lint')).toEqual(['lint', 'types'])
  expect(() => chooseSuites(['nothing'])).toThrow('there is no suite "nothing"')
})

test('words after "engine" that are no suites are parts of the engine’s; before it, or unknown, they are refused', () => {
  const engine = suites.find((s) => s.name === 'engine')
  expect(chooseSuites(['engine', 'page_repair/011_tls', 'regress'])).toEqual([
    { suite: engine, more: ['page_repair/011_tls', 'regress'] },
  ])
  expect(
    chooseSuites(['engine', 'page_repair', 'lint']).map(({ suite, more }) => [suite.name, ...more]),
  ).toEqual([['lint'], ['engine', 'page_repair']])
  expect(chooseSuites(['engine', 'page_repair'], ['--sanitize'])[0]?.more).toEqual([
    'page_repair',
    '--sanitize',
  ])
  const refusal = (...words: string[]) => {
    try {
      return chooseSuites(words)
    } catch (error) {
      return (error as FaultError).fault
    }
  }
  expect(refusal('page_repair')).toMatchObject({
    code: 'usage.suite',
    hint: expect.stringContaining('./floe test engine page_repair'),
  })
  expect(refusal('engine', 'page_repare')).toMatchObject({
    code: 'usage.suite',
    message: expect.stringContaining('"page_repare"'),
    hint: expect.stringContaining('page_repair'),
  })
  expect(() => chooseSuites(['lint', 'types'], ['x'])).toThrow('need exactly one suite')
})

test('the parts of the engine’s suite are those that its tool takes: every module is one', () => {
  const modules = readdirSync(join(checkout, 'engine/modules')).filter((name) =>
    existsSync(join(checkout, 'engine/modules', name, 'Makefile')),
  )
  expect(modules.length).toBeGreaterThan(0)
  expect(engineSuiteNames()).toEqual(expect.arrayContaining(['regress', 'isolation', ...modules]))
  const tool = join(checkout, 'engine/tools/engine')
  const { status, stderr } = spawnSync(tool, ['test', 'no-such-suite'], { encoding: 'utf8' })
  expect(status).toBe(2)
  expect(stderr).toContain(`there are: ${engineSuiteNames().join(' ')}`)
})
