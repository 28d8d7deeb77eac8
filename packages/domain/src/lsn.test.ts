import { expect, test } from 'vitest'
import { bytesToLsn, Lsn, lsnToBytes } from './lsn'

test.each(['0/0', '0/7000000', 'FFFFFFFF/FFFFFFFF', '16/B3748'])('%s is the same there and back', (lsn) => {
  expect(bytesToLsn(lsnToBytes(Lsn.parse(lsn)))).toBe(lsn)
})
