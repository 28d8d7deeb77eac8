import { expect, test } from 'vitest'
import { formatEventId, parseEventId } from './event-id'

test('an event id gives back the positions it was made of', () => {
  for (const positions of [[], [7], [41, null, 0], [-1, 999_999_999_999]])
    expect(parseEventId(formatEventId(positions), positions.length)).toEqual(positions)
})

test('an id of another number of instances, or anything else, is no id', () => {
  expect(parseEventId('1,2', 3)).toBeNull()
  expect(parseEventId('1;2', 1)).toBeNull()
  expect(parseEventId('DROP', 1)).toBeNull()
  expect(parseEventId('1e9', 1)).toBeNull()
})
