import { expect, test } from 'vitest'
import { rulesFor } from './hosts-in-namespaces'
import { commandOf } from './person'

test('a person does the first thing that a hint names and that mends', () => {
  expect(commandOf('Rejoin it: "./floe standby rejoin c-2".')).toEqual(['standby', 'rejoin', 'c-2'])
  expect(
    commandOf('Start it: "./floe instance start c", or fail over: "./floe cluster failover c --to c-2".'),
  ).toEqual(['instance', 'start', 'c'])
  expect(commandOf('"./floe incident list" shows it. Then: "./floe cluster failover c --to d"')).toEqual([
    'cluster',
    'failover',
    'c',
    '--to',
    'd',
  ])
})

test('what only looks, deletes or is no command is not done', () => {
  for (const hint of [
    null,
    'Bring its host back.',
    'Look: "./floe operation show 1".',
    '"./floe instance delete c --confirm c"',
    '"./floe standby rejoin NAME"',
  ])
    expect(commandOf(hint)).toBeNull()
})

test('losses of packets become rules of the direction that they are of, and of nobody else', () => {
  const rules = rulesFor([
    { of: '198.18.0.1', direction: 'in' },
    { of: '198.18.0.2', direction: 'out', percent: 20 },
  ])
  expect(rules).toContain('ip saddr 198.18.0.1 drop')
  expect(rules).toContain('ip daddr 198.18.0.2 numgen random mod 100 < 20 drop')
  expect(rules.match(/ drop$/gm)).toHaveLength(2)
  // what held before is gone
  expect(rulesFor([])).not.toContain(' drop')
  expect(rulesFor([])).toContain('delete table ip chaos')
})
