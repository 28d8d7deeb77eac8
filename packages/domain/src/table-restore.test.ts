import { expect, test } from 'vitest'
import { HostDirectory, QualifiedName, qualifiedName, readQualifiedName, restoredName } from './table-restore'

test('a table is named as in SQL: lower case unless it is quoted', () => {
  expect(readQualifiedName('public.account')).toEqual({ schema: 'public', name: 'account' })
  expect(readQualifiedName('Public.Account')).toEqual({ schema: 'public', name: 'account' })
  expect(readQualifiedName('"Odd. ""schema"."T"')).toEqual({ schema: 'Odd. "schema', name: 'T' })
  expect(readQualifiedName('app."T"')).toEqual({ schema: 'app', name: 'T' })
  for (const text of [
    'account',
    'a.b.c',
    '.b',
    'a.',
    'a b.c',
    '"a.b',
    'a."b"c',
    '',
    `public.${'x'.repeat(64)}`,
    `public.${'é'.repeat(32)}`,
  ])
    expect([text, QualifiedName.safeParse(text).success]).toEqual([text, false])
})

test('a name is written so that it is read as the same', () => {
  for (const [schema, name] of [
    ['public', 'account'],
    ['Odd "schema', 'T.x'],
    ['a b', 'ä'],
  ] as const)
    expect(readQualifiedName(qualifiedName(schema, name))).toEqual({ schema, name })
})

test('the name of the result fits into a name, without half a character', () => {
  expect(restoredName('account')).toBe('polar_restored_account')
  expect(new TextEncoder().encode(restoredName('x'.repeat(63))).length).toBe(63)
  expect(restoredName('🐘'.repeat(15))).toBe(`polar_restored_${'🐘'.repeat(12)}`)
})

test('a directory of the host is an absolute path on one line', () => {
  expect(HostDirectory.safeParse("/srv/it's 100 %/base").success).toBe(true)
  for (const path of ['srv/base', '', '/srv/a\nb', '/srv/\u0000', '/\u007f'])
    expect([path, HostDirectory.safeParse(path).success]).toEqual([path, false])
})
