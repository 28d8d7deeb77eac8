import { expect, test } from 'vitest'
import type { TableChoice } from './table-list'
import { changedFirst } from './use-tables'

test('tables that were changed last come first, those that were not in their order', () => {
  const table = (name: string, lastChangedAt: number | null) => ({ name, lastChangedAt }) as TableChoice
  const sorted = changedFirst([table('a', null), table('b', 5), table('c', null), table('d', 9)])
  expect(sorted.map((t) => t.name)).toEqual(['d', 'b', 'a', 'c'])
})
