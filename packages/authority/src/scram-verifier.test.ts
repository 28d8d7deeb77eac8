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

test('a password that PostgreSQL cannot be told is refused', () => {
  for (const password of ['', 'a\0b', 'half \ud83d of a pair'])
    expect(() => scramVerifier(password)).toThrow(RangeError)
})

test('two forms of the same password have one verifier', () => {
  const salt = Buffer.from('0123456789abcdef')
  const same = (a: string, b: string) => scramVerifier(a, salt) === scramVerifier(b, salt)
  expect(same('na\u00efve', 'nai\u0308ve')).toBe(true)
  expect(same('a\u00a0b', 'a b\u00ad')).toBe(true)
  expect(same('\u2168', 'IX')).toBe(true)
  // unassigned in Unicode 3.2: taken as it is, like letters that run both ways
  expect(same('\u{1f600}\u00a0', '\u{1f600} ')).toBe(false)
  expect(same('\u05d0a\u00a0', '\u05d0a ')).toBe(false)
})
