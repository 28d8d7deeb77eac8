import { expect, test } from 'vitest'
import { resolveDrift } from './resolve-drift'

test('drift is resolved in one step, whatever state the instance is in, and says which way', () => {
  const plan = (how: 'adopt' | 'revert') => resolveDrift.plan({ how } as never, { state: 'stopped' })
  expect(plan('adopt').map((s) => s.name)).toEqual(['resolve'])
  expect(plan('adopt')[0]?.title).toContain('Adopt')
  expect(plan('revert')[0]?.title).toContain('Revert')
})
