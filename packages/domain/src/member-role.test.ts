import { expect, test } from 'vitest'
import { shownRole } from './member-role'

test('a member is called fenced only where its agent has reported that', () => {
  expect(shownRole({ memberRole: 'fenced', fenced: null })).toBe('to be fenced')
  expect(shownRole({ memberRole: 'fenced', fenced: { at: 0, reason: '' } })).toBe('fenced')
  for (const memberRole of ['primary', 'standby'] as const)
    expect(shownRole({ memberRole, fenced: null })).toBe(memberRole)
})
