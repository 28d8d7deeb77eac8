import { expect, test } from 'vitest'
import { unitItem, unitLine, unitWord } from './unit-file'

test('what systemd would replace, or take for the end of a word, is only a character', () => {
  expect(unitWord('/a b/%h/$x/"\\')).toBe('"/a b/%%h/$$x/\\"\\\\"')
  expect(unitItem('A=/h%n$y')).toBe('"A=/h%%n$y"')
  expect(unitLine('/a b/%h/$x')).toBe('/a b/%%h/$x')
})

test('a value that would end its line, or go on in the next, is refused', () => {
  for (const text of ['/a\nExecStart=/bin/sh', '/a\r', '/a\\', '/a ', ' /a'])
    expect(() => unitLine(text)).toThrow('no line of a unit can hold')
})
