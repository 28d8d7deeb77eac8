import { expect, test } from 'vitest'
import {
  foreseeableLogin,
  foreseeableMembers,
  MemberLogin,
  newLogin,
  purposeOf,
  replicationLoginOf,
} from './member-login'

const random = '0123456789abcdef'

test('a role of the longest name still fits, and keeps all of its random digits', () => {
  const longest = newLogin('standby', `a${'-b'.repeat(19)}c`, random)
  expect(longest).toHaveLength(63)
  expect(MemberLogin.parse(newLogin('standby', 'x'.repeat(60), random))).toMatch(new RegExp(`_${random}$`))
  expect(newLogin('repair', 'one-2', random)).toBe(`floe_repair_one_2_${random}`)
})

test.each([
  'floe_repair_ all trust\nhost all all all trust #',
  'floe_repair_one"',
  'floe_standby_One',
  'floe_standby_',
  'postgres',
  'all',
  '+floe_standby_one',
  '/^floe_standby_one',
  'floe_standby_one,all',
  `floe_standby_${'x'.repeat(60)}`,
])('%j is no role of a member', (name) => {
  expect(MemberLogin.safeParse(name).success).toBe(false)
})

test('a member whose agent tells no role has the one that was computed before', () => {
  expect(replicationLoginOf({ name: 'one-2' })).toBe('floe_standby_one_2')
  expect(foreseeableLogin('repair', 'one-2')).toBe('floe_repair_one_2')
  const logins = { replication: `floe_standby_one_2_${random}`, repair: null }
  expect(replicationLoginOf({ name: 'one-2', logins })).toBe(logins.replication)
  expect(purposeOf('floe_repair_one_2')).toBe('repair')
})

test('members that come as a role that anybody could foresee are named', () => {
  const named = (...members: Parameters<typeof foreseeableMembers>[0]) =>
    foreseeableMembers(members, undefined).map((m) => m.name)
  const well = { replication: `floe_standby_one_2_${random}`, repair: `floe_repair_one_2_${random}` }
  expect(
    named({ name: 'one', logins: { replication: null, repair: null } }, { name: 'one-2', logins: well }),
  ).toEqual([])
  expect(named({ name: 'one-2', logins: { ...well, replication: 'floe_standby_one_2' } })).toEqual(['one-2'])
  const repair = { name: 'one-2', logins: { ...well, repair: 'floe_repair_one_2' } }
  expect(named(repair)).toEqual(['one-2'])
  expect(foreseeableMembers([repair], { enabled: false })).toEqual([])
  // an agent of an earlier version tells none: of a cluster they are those of before, of one instance alone there are none
  expect(named({ name: 'one' })).toEqual([])
  expect(named({ name: 'one' }, { name: 'one-2' })).toEqual(['one', 'one-2'])
})
