import { operationKinds } from '@floe/domain'
import { expect, test } from 'vitest'
import { operationDefinition } from './definitions'

test('every step a plan can name has a body with a deadline, for every observed state', () => {
  const states = [
    'creating',
    'stopped',
    'starting',
    'running',
    'stopping',
    'crashed',
    'deleting',
    'unknown',
    null,
  ] as const
  for (const kind of operationKinds)
    for (const state of states) {
      const definition = operationDefinition(kind)
      const steps = definition.plan({ mode: 'fast', changes: [] } as never, { state })
      expect(steps.length).toBeGreaterThan(0)
      expect(new Set(steps.map((s) => s.name)).size).toBe(steps.length)
      for (const step of steps)
        expect(
          (definition.steps as Record<string, { deadlineMs: number }>)[step.name]?.deadlineMs,
        ).toBeGreaterThan(0)
    }
})
