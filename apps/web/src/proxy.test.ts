import { NextRequest } from 'next/server'
import { expect, test } from 'vitest'
import { proxy } from './proxy'

const policyOf = () =>
  proxy(new NextRequest('http://127.0.0.1:3000/instances')).headers.get('content-security-policy')

test('every page has a policy that lets no script in but its own, with a nonce that is never used twice', () => {
  const policy = policyOf() ?? ''
  const script = policy.split('; ').find((d) => d.startsWith('script-src ')) ?? ''
  expect(script).toMatch(/'nonce-[A-Za-z0-9+/=]{20,}'/)
  expect(policy).not.toMatch(/script-src[^;]*unsafe/)
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).toContain("default-src 'self'")
  expect(policyOf()).not.toBe(policy)
})
