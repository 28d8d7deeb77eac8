import type { InstanceId, SynchronousStandbys } from '@floe/domain'
import { expect, test } from 'vitest'
import { moved, sameSynchronous, waitingForFewer } from './synchronous-choice'

const [a, b, c] = ['a', 'b', 'c'] as unknown as [InstanceId, InstanceId, InstanceId]
const first: SynchronousStandbys = { method: 'first', count: 2, instanceIds: [a, b, c], strict: false }

test('a standby moves by one place and not past the ends', () => {
  expect(moved([a, b, c], c, -1)).toEqual([a, c, b])
  expect(moved([a, b, c], a, 1)).toEqual([b, a, c])
  expect(moved([a, b, c], a, -1)).toEqual([a, b, c])
  expect(moved([a, b, c], c, 1)).toEqual([a, b, c])
  expect(moved([a, b], c, 1)).toEqual([a, b])
})

test('the order makes another choice of FIRST, and none of ANY', () => {
  const turned = { ...first, instanceIds: [c, b, a] }
  expect(sameSynchronous(first, { ...first })).toBe(true)
  expect(sameSynchronous(first, turned)).toBe(false)
  expect(sameSynchronous({ ...first, method: 'any' }, { ...turned, method: 'any' })).toBe(true)
  expect(sameSynchronous(first, { ...first, strict: true })).toBe(false)
  expect(sameSynchronous(first, null)).toBe(false)
  expect(sameSynchronous(null, null)).toBe(true)
})

test('fewer are as many as are connected; without any there is nobody left to wait for', () => {
  expect(waitingForFewer(first, { connected: 1 })).toEqual({ ...first, count: 1 })
  expect(waitingForFewer(first, { connected: 0 })).toBeNull()
  expect(waitingForFewer(first, { connected: 2 })).toBeNull()
  expect(waitingForFewer(null, { connected: 1 })).toBeNull()
})
