import { expect, test } from 'vitest'
import { failedLines } from './failed-lines'

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
