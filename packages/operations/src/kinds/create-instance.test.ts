import { expect, test } from 'vitest'
import { createInstance } from './create-instance'

test('an instance is created, started and seen running, in this order', () => {
  const steps = createInstance.plan({} as never, { state: null })
  expect(steps.map((s) => s.name)).toEqual(['create', 'start', 'observe'])
  const limited = createInstance.plan({ limits: { cpu: 1 } } as never, { state: null })
  expect(limited.map((s) => s.name)).toEqual(['create', 'limit', 'start', 'observe'])
})
