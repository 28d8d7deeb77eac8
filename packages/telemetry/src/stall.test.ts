import { expect, test } from 'vitest'
import { waitShares } from './stall'

test('the three most frequent waits are told with their share of all', () => {
  const wait = (event: string, count: number) => ({ type: 'IO', event, count })
  expect(waitShares({ waits: [wait('WalSync', 6), wait('WalWrite', 2), wait('A', 1), wait('B', 1)] })).toBe(
    'IO:WalSync 60 %, IO:WalWrite 20 %, IO:A 10 %',
  )
  expect(waitShares({ waits: [] })).toBe('')
})
