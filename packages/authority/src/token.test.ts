import { expect, test } from 'vitest'
import {
  enrolmentTokenHash,
  isEnrolmentToken,
  makeEnrolmentToken,
  proveByToken,
  tokenHashOfProof,
} from './token'

test('who has the token proves it without showing it', () => {
  const token = makeEnrolmentToken()
  const proof = proveByToken(token, 'a request')
  expect(tokenHashOfProof(proof, 'a request')).toBe(enrolmentTokenHash(token))
  expect(JSON.stringify(proof)).not.toContain(token.slice(5))
})

test('a proof is good for its message only, and another token’s for nothing', () => {
  const token = makeEnrolmentToken()
  const proof = proveByToken(token, 'a request')
  expect(tokenHashOfProof(proof, 'another request')).toBeNull()
  const other = proveByToken(makeEnrolmentToken(), 'a request')
  expect(tokenHashOfProof({ ...other, tokenKey: proof.tokenKey }, 'a request')).toBeNull()
  expect(tokenHashOfProof(other, 'a request')).not.toBe(enrolmentTokenHash(token))
})

test('what is no proof or no token is refused, not failed over', () => {
  for (const tokenKey of ['', 'x', 'AAAA'.repeat(20)])
    expect(tokenHashOfProof({ tokenKey, signature: 'AAAA' }, 'a request')).toBeNull()
  for (const text of ['', 'floe-', 'floe-abc', makeEnrolmentToken().slice(5), `${makeEnrolmentToken()}AA`])
    expect(isEnrolmentToken(text)).toBe(false)
  expect(isEnrolmentToken(makeEnrolmentToken())).toBe(true)
})

test('no two tokens are alike', () => {
  expect(new Set(Array.from({ length: 50 }, makeEnrolmentToken)).size).toBe(50)
})
