import type { FaultError } from '@floe/domain'
import { describe, expect, test } from 'vitest'
import { connectionFault, type DatabaseFacts, requireFit } from './judge-external'

const installationId = '0b0c2f34-9f4e-4d8e-8a43-5d8f0c7f2f10'
const url = 'postgresql://floe@db.example.com:5432/floe?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem'
const empty: DatabaseFacts = {
  serverVersion: '17.2',
  serverVersionNumber: 170002,
  database: 'floe',
  role: 'floe',
  owner: 'floe',
  ownsDatabase: true,
  createsRoles: true,
  readOnly: false,
  encoding: 'UTF8',
  encrypted: true,
  installationId: null,
  relations: [],
  roles: [],
}
const mark = `Floe installation ${installationId}`
const ours: DatabaseFacts = {
  ...empty,
  installationId,
  createsRoles: false,
  relations: ['public.installation'],
  roles: ['floe_controller', 'floe_web'].map((name) => ({ name, mark })),
}

describe('a database that Floe does not run', () => {
  test('is taken when it is empty, or holds this installation already', () => {
    for (const claimed of [false, true]) requireFit(ours, { url, installationId, claimed })
    requireFit(empty, { url, installationId, claimed: false })
  })

  test.each<[string, Partial<DatabaseFacts>]>([
    ['too_old', { serverVersion: '14.13', serverVersionNumber: 140013 }],
    ['not_verified', { encrypted: false }],
    ['read_only', { readOnly: true }],
    ['encoding', { encoding: 'SQL_ASCII' }],
    ['not_owner', { ownsDatabase: false, owner: 'postgres' }],
    ['of_another', { installationId: '11111111-9f4e-4d8e-8a43-5d8f0c7f2f10' }],
    ['not_empty', { relations: ['public.customer', 'public._prisma_migrations'] }],
    ['role_in_use', { roles: [{ name: 'floe_web', mark: null }] }],
    ['role_in_use', { roles: [{ name: 'floe_web', mark: 'Floe installation of somebody else' }] }],
    ['no_createrole', { createsRoles: false }],
  ])('is refused with %s and a way out', (name, changed) => {
    try {
      requireFit({ ...empty, ...changed }, { url, installationId, claimed: false })
      expect.unreachable()
    } catch (error) {
      const { code, message, detail, hint } = (error as FaultError).fault
      expect(code).toBe(`control_database.${name}`)
      for (const text of [message, detail, hint]) expect(text).toBeTruthy()
    }
  })

  test('is refused when it is empty and this installation had one', () => {
    expect(() => requireFit(empty, { url, installationId, claimed: true })).toThrow(
      'does not hold this installation’s data',
    )
  })
})

test.each([
  ['ERR_TLS_CERT_ALTNAME_INVALID', "Host: x. is not in the cert's altnames: DNS:y", 'not_verified'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate in certificate chain', 'not_verified'],
  ['CERT_HAS_EXPIRED', 'certificate has expired', 'not_verified'],
  ['', 'The server does not support SSL connections', 'not_verified'],
  ['28P01', 'password authentication failed for user "floe"', 'no_login'],
  ['28000', 'no pg_hba.conf entry for host', 'no_login'],
  ['3D000', 'database "floe" does not exist', 'missing'],
  ['ECONNREFUSED', 'connect ECONNREFUSED 10.0.0.1:5432', 'unreachable'],
])('%s is told as what it means', (code, message, name) => {
  const fault = connectionFault(url, { code, message })
  expect(fault.code).toBe(`control_database.${name}`)
  expect(fault.message).toContain('db.example.com:5432/floe')
  expect(fault.detail).toBe(`${message}.`)
  expect(fault.hint).toBeTruthy()
})
