import { expect, test } from 'vitest'
import { isOf, stepAbove } from './limiter'

const postmaster = { pid: 40, startTicks: 500 }

test('a process is the postmaster or its child; a pid that another has by now is neither', () => {
  expect(isOf(postmaster, { pid: 40, startTicks: 500, parent: 1 })).toBe(true)
  expect(isOf(postmaster, { pid: 41, startTicks: 600, parent: 40 })).toBe(true)
  // the tree of processes still says that it is a child
  expect(isOf(postmaster, { pid: 41, startTicks: 900, parent: 77 })).toBe(false)
  expect(isOf(postmaster, { pid: 40, startTicks: 900, parent: 1 })).toBe(false)
})

test.each([
  [0, 0],
  [1, 1024 ** 2],
  [1024 ** 2, 1024 ** 2],
  [40 * 1024 ** 2, 64 * 1024 ** 2],
])('%d bytes are told as %d', (bytes, told) => {
  expect(stepAbove(bytes)).toBe(told)
})
