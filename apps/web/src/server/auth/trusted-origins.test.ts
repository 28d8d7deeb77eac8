import { expect, test } from 'vitest'
import { isSameOrigin, trustedOrigins } from './trusted-origins'

const trusted = trustedOrigins({ webUrl: 'http://127.0.0.1:3000' })
const asks = (headers: Record<string, string>) => isSameOrigin(new Headers(headers), trusted)

test('a console on loopback is trusted under each of its names, another port is not', () => {
  expect(trusted).toContain('http://localhost:3000')
  expect(asks({ origin: 'http://localhost:3000', 'sec-fetch-site': 'same-origin' })).toBe(true)
  expect(asks({ origin: 'http://localhost:3001' })).toBe(false)
})

test('a console with a public name is trusted under that name only', () => {
  expect(trustedOrigins({ webUrl: 'https://floe.example/' })).toEqual(['https://floe.example'])
})

test('what a browser says of another site is refused, whatever else it says', () => {
  expect(asks({ origin: 'http://127.0.0.1:3000', 'sec-fetch-site': 'cross-site' })).toBe(false)
  expect(asks({ origin: 'null', 'sec-fetch-site': 'same-origin' })).toBe(false)
  expect(asks({})).toBe(false)
})
