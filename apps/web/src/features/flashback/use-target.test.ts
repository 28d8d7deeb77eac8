import { expect, test } from 'vitest'
import { readTarget, writeTarget } from './use-target'

const operation = '3b2f8c52-6a0e-4b1e-9a58-0f2f6f1c7b11'
const address = new URLSearchParams(
  `database=app&table=public.orders&at=1790000000123&preview=${operation}&other=1`,
)

test('an address names the table, the moment and what was begun for them', () => {
  expect(readTarget(address)).toEqual({
    database: 'app',
    table: 'public.orders',
    moment: 1_790_000_000_123,
    preview: operation,
    flashback: null,
  })
  // a moment is exact to the microsecond
  const exact = writeTarget(address, { moment: 1_790_000_000_123.457 })
  expect(exact.get('at')).toBe('1790000000123.457')
  expect(readTarget(exact).moment).toBe(1_790_000_000_123.457)
  expect(readTarget(new URLSearchParams('at=now&preview=x'))).toMatchObject({ moment: null, preview: null })
})

test('another moment drops the preview of the former one, another table the moment, too', () => {
  const after = (change: Parameters<typeof writeTarget>[1]) =>
    Object.fromEntries(writeTarget(address, change))
  expect(after({ moment: 5 })).toEqual({ database: 'app', table: 'public.orders', at: '5', other: '1' })
  expect(after({ table: 'public.parts' })).toEqual({ database: 'app', table: 'public.parts', other: '1' })
  expect(after({ table: 'public.parts', moment: 7 })).toEqual({
    database: 'app',
    table: 'public.parts',
    at: '7',
    other: '1',
  })
  expect(after({ database: 'b' })).toEqual({ database: 'b', other: '1' })
  expect(after({ table: null })).toEqual({ database: 'app', other: '1' })
})
