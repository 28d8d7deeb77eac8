import { operationKinds, operationKindsThat, operationRecord } from '@floe/domain'
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

test('a point of no return is a step of its operation, so that a cancel finds it', () => {
  const kinds = operationKindsThat(({ pointOfNoReturn }) => pointOfNoReturn !== undefined)
  expect(kinds).toContain('failover-cluster')
  for (const kind of kinds)
    expect(Object.keys(operationDefinition(kind).steps), kind).toContain(
      operationRecord(kind).pointOfNoReturn,
    )
})

test('stages that are shown before anything is done are those of the plan', () => {
  for (const kind of operationKindsThat(({ stages }) => stages !== undefined))
    expect(
      operationDefinition(kind)
        .plan({} as never, { state: 'running' })
        .map(({ name }) => name),
      kind,
    ).toEqual(operationRecord(kind).stages?.map(({ name }) => name))
})
