import { expect, test } from 'vitest'
import { type HbaRule, letsInWithoutTls, requiresTls, withoutTlsWarning } from './remote-access'

const rule = (line: string): HbaRule => {
  const [type = null, database = '', user = '', address = '', authMethod = null] = line.split(/ +/)
  const local = type === 'local'
  return {
    type,
    database: database.split(','),
    userName: user.split(','),
    address: local ? null : address,
    netmask: null,
    authMethod: local ? address : authMethod,
    error: null,
  }
}
const letsIn = (...lines: string[]) => letsInWithoutTls(lines.map(rule))

test.each([
  ['plain host lets remote clients in without TLS', true, ['host all all all scram-sha-256']],
  ['hostssl does not', false, ['hostssl all all all scram-sha-256']],
  ['clients on this host do not count', false, ['host all all 127.0.0.1 trust', 'host all all ::1 trust']],
  ['nor does the socket', false, ['local all all peer']],
  ['one network is enough', true, ['hostssl all all all scram-sha-256', 'host app app 10.0.0.0 md5']],
  ['replication counts', true, ['hostssl all all all scram-sha-256', 'host replication all all md5']],
  ['samenet is other hosts', true, ['host all all samenet md5']],
  [
    'after a rejection of all nothing counts',
    false,
    ['hostnossl all all all reject', 'host all all all md5'],
  ],
  ['a rejection of some rejects no others', true, ['hostnossl all bob all reject', 'host all all all md5']],
  [
    'a rejection that comes later is too late',
    true,
    ['host all all all md5', 'hostnossl all all all reject'],
  ],
])('%s', (_what, expected, lines) => {
  expect(letsIn(...lines)).toBe(expected)
})

test('of files with an error nothing is known: what was read before still holds', () => {
  expect(letsInWithoutTls([{ ...rule('hostssl all all all md5'), error: 'invalid' }])).toBeNull()
})

test('strings say TLS only where it is served and asked for', () => {
  const access = { tls: true, listens: true, withoutTls: false, sessionsWithoutTls: 0 }
  expect(requiresTls(access)).toBe(true)
  expect(requiresTls({ ...access, tls: false })).toBe(false)
  expect(requiresTls({ ...access, withoutTls: null })).toBe(false)
  expect(requiresTls(null)).toBe(false)
  expect(withoutTlsWarning(access)).toBeNull()
  expect(withoutTlsWarning({ ...access, withoutTls: true, sessionsWithoutTls: 2 })).toContain(
    '2 sessions are',
  )
})
