import { expect, test } from 'vitest'
import { requireStillDown } from './switchover'

test('a round of failover counts only where the fence found the killed primary down', () => {
  const of = (wasRunning: boolean) => ({ bench: { wasRunning, endLsn: '0/1' }, lossBytes: 0 })
  expect(() => requireStillDown('bench', of(false))).not.toThrow()
  expect(() => requireStillDown('bench', of(true))).toThrow('"bench" was not down any more')
  expect(() => requireStillDown('bench-2', of(false))).toThrow('"bench-2" was not down any more')
  expect(() => requireStillDown('bench', null)).toThrow('was not down any more')
})
