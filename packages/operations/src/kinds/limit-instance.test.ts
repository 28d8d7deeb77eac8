import { noLimits } from '@floe/domain'
import { expect, test } from 'vitest'
import { limitInstance } from './limit-instance'

const guard = (changes: object, limits: object) =>
  limitInstance.guard?.({ input: { changes }, instance: { limits } } as never)

test('limits are set in one step', () => {
  expect(limitInstance.plan({} as never, { state: 'running' }).map((s) => s.name)).toEqual(['limit'])
})

test('what an instance cannot have together with the limits that stay begins nothing', () => {
  const before = { ...noLimits, memoryMax: 1024 ** 3 }
  expect(() => guard({ memoryHigh: 2 * 1024 ** 3 }, before)).toThrow('must not be above')
  expect(() => guard({ memoryHigh: 2 * 1024 ** 3, memoryMax: null }, before)).not.toThrow()
  expect(() => guard({ cpu: 0.001 }, noLimits)).toThrow('too small')
})
