import { expect, test } from 'vitest'
import { scramVerifier } from './scram-verifier'

test('the verifier is the one PostgreSQL itself makes of the same password and salt', () => {
  // made by PostgreSQL: CREATE ROLE … PASSWORD 'correct horse', then read from pg_authid
  const made =
    'SCRAM-SHA-256$4096:/jALrOWRrPsMOICRbqB5ew==$NJLoOm3dxo3n4zrqhhUlc0uzhuFiHRXiT0AcvnhiKko=:hDOziUpQtpPAnmAQInxj6zzSBBS7u0wlfrFebtk5BFM='
  const salt = Buffer.from(/4096:([^$]+)\$/.exec(made)?.[1] as string, 'base64')
  expect(scramVerifier('correct horse', salt)).toBe(made)
})

test('two verifiers of one password differ', () => {
  expect(scramVerifier('x')).not.toBe(scramVerifier('x'))
})

test('a password that would need normalising is refused', () => {
  expect(() => scramVerifier('pässword')).toThrow(RangeError)
  expect(() => scramVerifier('')).toThrow(RangeError)
})
