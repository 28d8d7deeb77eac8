import { expect, test } from 'vitest'
import { stopInstance } from './stop-instance'

test('a stop is seen through until the instance is stopped, and says when it is immediate', () => {
  const plan = (mode: 'fast' | 'immediate') => stopInstance.plan({ mode } as never, { state: 'running' })
  expect(plan('fast').map((s) => s.name)).toEqual(['stop', 'observe'])
  expect(plan('immediate')[0]?.title).toContain('immediately')
})
