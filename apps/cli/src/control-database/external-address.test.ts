import type { FaultError } from '@floe/domain'
import { describe, expect, test } from 'vitest'
import {
  readExternalAddress,
  shownAddress,
  systemRootCertificates,
  withRootCertificates,
} from './external-address'

describe('the URL of a control database that Floe does not run', () => {
  test('is kept in one form that names port, verification and certificates', () => {
    expect(
      readExternalAddress('postgres://floe@db.example.com/floe?sslrootcert=/etc/ca.pem&sslmode=verify-full'),
    ).toEqual({
      url: 'postgresql://floe@db.example.com:5432/floe?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem',
      database: 'floe',
      rootCertificates: '/etc/ca.pem',
    })
  })

  test.each(['', '&sslrootcert=system'])(
    'without a file of authorities (%s) names the system’s, which every client then reads',
    (more) => {
      const { url, rootCertificates } = readExternalAddress(
        `postgresql://floe@db.example.com:6432/floe?sslmode=verify-full${more}`,
      )
      expect(rootCertificates).toBeNull()
      expect(new URL(url).searchParams.get('sslrootcert')).toBe(systemRootCertificates)
      expect(new URL(url).port).toBe('6432')
    },
  )

  test('read again is the same, also with the certificates in another place', () => {
    const { url } = readExternalAddress('postgresql://a%40b@db.example.com/floe?sslmode=verify-full')
    const moved = withRootCertificates(url, '/srv/with space/ca.pem')
    expect(readExternalAddress(moved)).toMatchObject({
      url: moved,
      rootCertificates: '/srv/with space/ca.pem',
    })
    expect(shownAddress(moved)).toBe('db.example.com:5432/floe')
  })

  test.each([
    ['no sslmode', 'postgresql://floe@db.example.com/floe', 'no sslmode'],
    ['sslmode=require', 'postgresql://floe@db.example.com/floe?sslmode=require', 'sslmode=require'],
    ['sslmode=verify-ca', 'postgresql://floe@db.example.com/floe?sslmode=verify-ca', 'sslmode=verify-ca'],
    ['sslmode=disable', 'postgresql://floe@db.example.com/floe?sslmode=disable', 'sslmode=disable'],
    [
      'the mode twice',
      'postgresql://floe@h.example/floe?sslmode=verify-full&sslmode=disable',
      'Programs differ',
    ],
    [
      'another host behind it',
      'postgresql://floe@h.example/floe?sslmode=verify-full&host=evil',
      'another server',
    ],
    ['a socket', 'postgresql://floe@h.example/floe?sslmode=verify-full&host=/tmp', 'another server'],
    ['hostaddr', 'postgresql://floe@h.example/floe?sslmode=verify-full&hostaddr=10.0.0.1', 'another server'],
    [
      'libpq’s meaning',
      'postgresql://floe@h.example/floe?sslmode=verify-full&uselibpqcompat=true',
      'verification',
    ],
    ['ssl', 'postgresql://floe@h.example/floe?sslmode=verify-full&ssl=0', 'verification'],
    [
      'an IP address',
      'postgresql://floe@10.0.0.1/floe?sslmode=verify-full',
      'node-postgres compares no address',
    ],
    ['an IPv6 address', 'postgresql://floe@[fd00::1]/floe?sslmode=verify-full', 'compares no address'],
    ['two hosts', 'postgresql://floe@a,b/floe?sslmode=verify-full', 'letters, digits'],
    ['no host', 'postgresql:///floe?sslmode=verify-full', 'a socket has no certificate'],
    ['no database', 'postgresql://floe@h.example/?sslmode=verify-full', 'name of the database'],
    ['a path', 'postgresql://floe@h.example/a/b?sslmode=verify-full', 'letters, digits'],
    ['no owner', 'postgresql://h.example/floe?sslmode=verify-full', 'role that owns'],
    ['web as owner', 'postgresql://floe_web@h.example/floe?sslmode=verify-full', 'granted by the owner'],
    ['a relative file', 'postgresql://floe@h.example/floe?sslmode=verify-full&sslrootcert=ca.pem', 'ca.pem'],
    ['a fragment', 'postgresql://floe@h.example/floe?sslmode=verify-full#x', 'follow'],
    ['another protocol', 'https://floe@h.example/floe?sslmode=verify-full', 'postgresql://'],
    ['no URL at all', 'host=db.example.com sslmode=verify-full', 'postgresql://'],
  ])('is refused with %s', (_, text, why) => {
    try {
      readExternalAddress(text)
      expect.unreachable()
    } catch (error) {
      const { code, message, detail, hint } = (error as FaultError).fault
      expect(code).toBe('usage.control_database')
      expect(`${message} ${detail}`).toContain(why)
      expect(hint).toBeTruthy()
    }
  })

  test.each([
    'postgresql://floe:hunter2@h.example/floe?sslmode=verify-full',
    'postgresql://floe@h.example/floe?sslmode=verify-full&password=hunter2',
    'postgresql://floe:hunter2@h.example:x/floe',
  ])('is refused with a password, which is not repeated', (text) => {
    try {
      readExternalAddress(text)
      expect.unreachable()
    } catch (error) {
      expect(JSON.stringify((error as FaultError).fault)).not.toContain('hunter2')
      expect((error as FaultError).cause).toBeUndefined()
    }
  })
})
