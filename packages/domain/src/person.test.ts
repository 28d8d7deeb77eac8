import { expect, test } from 'vitest'
import { PersonName } from './person'

test('a person has a name that is short, visible and nobody else’s', () => {
  expect(PersonName.parse('  Ada Lovelace ')).toBe('Ada Lovelace')
  expect(PersonName.parse('Zoë “Z” O’Neill 🙂')).toBe('Zoë “Z” O’Neill 🙂')
  for (const name of [
    '',
    '   ',
    'x'.repeat(65),
    'a\0b',
    'a\nb',
    'a\u202eb',
    'controller',
    ' Controller ',
    'command line of this host',
    'Command  Line',
    'anonymous',
    'token of ada',
  ])
    expect(PersonName.safeParse(name).success, JSON.stringify(name)).toBe(false)
})
