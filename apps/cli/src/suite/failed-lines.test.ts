import { expect, test } from 'vitest'
import { failedLines, failureLines } from './failed-lines'

test('failed tests of Vitest, TAP and Playwright are shown with their message', () => {
  const log = [
    ' ✓ src/good.test.ts (2 tests)',
    ' FAIL  src/bad.test.ts > keeps rows',
    'AssertionError: expected 1 to be 2',
    '',
    ' ❯ src/bad.test.ts:3:4',
    ...Array.from({ length: 20 }, (_, i) => `noise ${i}`),
    'ok 1 - good',
    'not ok 2 - a page is torn',
    'ok 3 - good',
    ...Array.from({ length: 20 }, (_, i) => `noise ${i}`),
    '  1) [journeys] › 3-settings.spec.ts:10:1 › a value is refused ─────',
    '    Error: expect(locator).toBeVisible()',
  ].join('\n')
  const shown = failedLines(log)
  expect(shown).toContain(' FAIL  src/bad.test.ts > keeps rows')
  expect(shown).toContain('AssertionError: expected 1 to be 2')
  expect(shown).toContain('not ok 2 - a page is torn')
  expect(shown).toContain('    Error: expect(locator).toBeVisible()')
  expect(shown.join('\n')).not.toMatch(/good/)
})

test('a log that names no failure shows its end', () => {
  expect(failedLines('begin\n\nno room\n')).toEqual(['begin', 'no room'])
})

test('a log full of failures is cut, and says so', () => {
  const shown = failedLines(Array.from({ length: 100 }, (_, i) => `not ok ${i}`).join('\n'))
  expect(shown).toHaveLength(61)
  expect(shown.at(-1)).toBe('(40 more lines)')
})

test('of the engine’s failures the diagnostics are shown to their end', () => {
  const diagnostics = Array.from({ length: 20 }, (_, i) => `  +line ${i}`)
  const log = ['failed: regress: not ok 5 - hash', ...diagnostics, 'floe: what was left', 'noise']
  expect(failedLines(log.join('\n'))).toEqual(['failed: regress: not ok 5 - hash', ...diagnostics])
})

test('at the end a suite’s failures are named; one that named none, by its log; and not without end', () => {
  expect(failureLines('unit', ['a.test.ts > b: gone'], ['noise'])).toEqual(['unit: a.test.ts > b: gone'])
  expect(failureLines('lint', [], ['  no room', 'at all'])).toEqual(['lint: no room'])
  expect(failureLines('lint', [], [])).toEqual(['lint: it left no word of it'])
  const many = failureLines(
    'unit',
    Array.from({ length: 50 }, () => 'x'),
    [],
  )
  expect(many).toHaveLength(41)
  expect(many.at(-1)).toBe('unit: 10 more')
})
