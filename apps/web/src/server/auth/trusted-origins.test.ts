import { expect, test } from 'vitest'
import { isSameOrigin, trustedOrigins } from './trusted-origins'

const local = { webUrl: 'http://127.0.0.1:3000', webAddress: '127.0.0.1' }
const trusted = trustedOrigins(local, undefined)
const asks = (headers: Record<string, string>) => isSameOrigin(new Headers(headers), trusted)

test('a console on loopback is trusted under each of its names, another port is not', () => {
  expect(trusted).toContain('http://localhost:3000')
  expect(asks({ origin: 'http://localhost:3000', 'sec-fetch-site': 'same-origin' })).toBe(true)
  expect(asks({ origin: 'http://localhost:3001' })).toBe(false)
})

test('a console with a public name is trusted under that name only', () => {
  const open = { webUrl: 'https://floe.example/', webAddress: '127.0.0.1' }
  expect(trustedOrigins(open, new Headers({ host: 'evil.example' }))).toEqual(['https://floe.example'])
})

test('a console that listens for other machines is trusted under the address it was found at', () => {
  const wide = { webUrl: 'http://db1:3000', webAddress: '0.0.0.0' }
  expect(trustedOrigins(wide, new Headers({ host: '10.0.0.7:3000' }))).toContain('http://10.0.0.7:3000')
})

test('on loopback another name that leads here (DNS rebinding) is not trusted', () => {
  expect(trustedOrigins(local, new Headers({ host: 'evil.example:3000' }))).not.toContain(
    'http://evil.example:3000',
  )
})

test('what a browser says of another site is refused, whatever else it says', () => {
  expect(asks({ origin: 'http://127.0.0.1:3000', 'sec-fetch-site': 'cross-site' })).toBe(false)
  expect(asks({ origin: 'null', 'sec-fetch-site': 'same-origin' })).toBe(false)
  expect(asks({})).toBe(false)
})
