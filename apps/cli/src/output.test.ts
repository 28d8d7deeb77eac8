import { fault } from '@floe/domain'
import { expect, test, vi } from 'vitest'
import { duration, exitStatusOf, printFault, printResult, table, tell } from './output'

test('a mistake in the call ends with 2, everything else that fails with 1', () => {
  expect(exitStatusOf(fault('usage.port', 'x'))).toBe(2)
  expect(exitStatusOf(fault('instance.not_found', 'x'))).toBe(1)
})

test('an unknown cell is a dash and never 0; numbers stand to the right', () => {
  expect(
    table(
      ['name', 'tps'],
      [
        ['a', 5],
        ['longer', null],
        ['b', 1200],
      ],
    ),
  ).toBe('name     tps\na          5\nlonger     –\nb       1200')
})

test('durations read like speech', () => {
  expect([12, 1_500, 59_400, 61_000, 3_700_000, 90_000_000, null].map(duration)).toEqual([
    '12 ms',
    '2 s',
    '59 s',
    '1 min 1 s',
    '1 h 1 min',
    '1 d 1 h',
    '–',
  ])
})

/** What is written to both streams meanwhile. */
function written(act: () => void): string {
  let text = ''
  const take = (chunk: unknown) => {
    text += String(chunk)
    return true
  }
  const spies = [process.stdout, process.stderr].map((s) => vi.spyOn(s, 'write').mockImplementation(take))
  try {
    act()
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
  return text
}

test('what strangers have written steers no terminal, and a cell begins no line', () => {
  const name = 'a\u001b[2J\u009b2J\u202eb\nc'
  expect(table(['name'], [[name]])).toBe('name\na\\u{1b}[2J\\u{9b}2J\\u{202e}b\\u{a}c')
  const said = written(() => {
    printResult(false, {}, () => `said: ${name}`)
    printResult(true, { name }, () => '')
    printFault(fault('engine.words', 'it ended', { detail: name }).fault, true)
    tell(name)
  })
  expect(said).not.toMatch(/[^\P{Cc}\n]/u)
  expect(said).toContain('said: a\\u{1b}[2J\\u{9b}2J\\u{202e}b\nc\n')
  // for programs it is the same value
  const lines = written(() => printResult(true, { name }, () => ''))
  expect(JSON.parse(lines)).toEqual({ name })
})
