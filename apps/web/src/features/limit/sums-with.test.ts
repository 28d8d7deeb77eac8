import { noLimits } from '@floe/domain'
import { expect, test } from 'vitest'
import { sumsWith } from './sums-with'

test('limits that are typed are added to those that the host has', () => {
  const host = {
    instances: [{ limits: { ...noLimits, cpu: 1.5 } }, { limits: noLimits }],
    resources: [
      { resource: 'cpu', size: 2 },
      { resource: 'memory', size: 8 },
    ],
    memoryHigh: true,
  }
  expect(sumsWith(host, { ...noLimits, cpu: 0.75 })).toMatchObject([
    { resource: 'cpu', limited: 2.25, size: 2, unlimited: 1, over: true },
    { resource: 'memory', limited: 0, unlimited: 3, over: false },
  ])
  const high = { ...noLimits, memoryHigh: 6 }
  expect(sumsWith(host, high)[1]).toMatchObject({ limited: 6, unlimited: 2, highOnly: 1 })
  expect(sumsWith({ ...host, memoryHigh: false }, high)[1]).toMatchObject({ limited: 0, unlimited: 3 })
  expect(sumsWith({ ...host, resources: [] }, noLimits)).toEqual([])
})
