import { networkInterfaces } from 'node:os'
import { expect, test } from 'vitest'
import { addressRule, lookUpWithin, requireAddress } from './webhook-address'

const rule = addressRule(['10.9.0.1', 'floe.example'], [])

test('this machine, its link and its site are refused, however they are written', () => {
  for (const url of [
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f.0.0.1:9/',
    'http://0/',
    'http://[::1]/',
    'http://[::]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://169.254.169.254/latest/meta-data',
    'http://[fe80::1]/',
    'http://[fd00::1]/',
    'http://224.0.0.1/',
    'http://255.255.255.255/',
    'http://10.9.0.1:4501/',
  ])
    expect(() => requireAddress(new URL(url), rule), url).toThrow(/not allowed/)
  for (const { address } of Object.values(networkInterfaces()).flatMap((of) => of ?? []))
    expect([address, rule(address)]).toEqual([address, false])
})

test('other machines are not, and config.json may allow what is refused', () => {
  for (const url of ['https://192.0.2.7/', 'https://10.0.0.7/', 'https://[2001:db8::7]/'])
    requireAddress(new URL(url), rule)
  const allowing = addressRule([], ['127.0.0.1', 'fd00::/64'])
  expect(['127.0.0.1', '::ffff:127.0.0.1', 'fd00::7', '127.0.0.2', 'fd01::7'].map(allowing)).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
  expect(() => addressRule([], ['localhost'])).toThrow('neither an address nor a network')
})

test('a name is refused by what it resolves to', async () => {
  const found = (allow: readonly string[]) =>
    new Promise((settle) =>
      lookUpWithin(addressRule([], allow))('localhost', { family: 4 }, (error, address) =>
        settle(error?.message ?? address),
      ),
    )
  expect(await found([])).toMatch(/"localhost" is 127\.0\.0\.1, which is not allowed/)
  expect(await found(['127.0.0.1'])).toBe('127.0.0.1')
})
