import { expect, test } from 'vitest'
import { switchoverProof } from './switchover-proof'

test('a switchover loses nothing where who took over had the last record of an orderly end', () => {
  const proof = switchoverProof({ shutdownLsn: '0/5000028', endLsn: '0/50000A0', promoteMs: 40 }, 'two')
  expect(proof?.[0]).toBe('"two" holds every commit that was acknowledged: nothing is lost.')
  expect(proof?.join(' ')).toContain('0/5000028')
})

test('without both positions, or short of that record, nothing is said', () => {
  for (const result of [
    null,
    {},
    { shutdownLsn: '0/5000028' },
    { endLsn: '0/50000A0' },
    { shutdownLsn: '0/5000028', endLsn: null },
    // it ends where the record begins
    { shutdownLsn: '0/5000028', endLsn: '0/5000028' },
    { shutdownLsn: '1/0', endLsn: '0/FFFFFFFF' },
  ])
    expect(switchoverProof(result, 'two')).toBeNull()
})
