import { expect, test } from 'vitest'
import { safePath } from './safe-path'

test('a sign-in leads back to a page of the console', () => {
  expect(safePath('/instances/demo?from=1#wal')).toBe('/instances/demo?from=1#wal')
})

test('a sign-in never leads to another site', () => {
  for (const next of [
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    'javascript:alert(1)',
    undefined,
    '',
  ])
    expect(safePath(next)).toBe('/instances')
})
