import { expect, test } from 'vitest'
import { requireLoopDevices } from './loop-device'
import { coefficientOfVariation, longestStall, parseCommits } from './neighbours'

test('even seconds do not vary, and uneven ones by their share of the mean', () => {
  expect(coefficientOfVariation([100, 100, 100])).toBe(0)
  expect(coefficientOfVariation([50, 150])).toBeCloseTo(0.5)
})

test('commits are read from a log of pgbench, a cut line is none', () => {
  const log = '0 1 5120 0 1764000000 250000\n3 9 100 0 1764000001 500\n1 2 1'
  expect(parseCommits(log)).toEqual([1_764_000_000_250, 1_764_000_001_000.5])
})

test('the longest stall is found between commits, before the first and after the last', () => {
  expect(longestStall([1_100, 4_000, 1_000], 900, 5_000)).toBe(2_900)
  expect(longestStall([3_000, 3_100], 1_000, 3_200)).toBe(2_000)
  expect(longestStall([1_100, 9_000], 1_000, 6_000)).toBe(4_900)
  expect(longestStall([], 1_000, 6_000)).toBe(5_000)
})

test('without root it says so before anything is made', async () => {
  await expect(requireLoopDevices(1_000)).rejects.toMatchObject({ fault: { code: 'bench.no_root' } })
})
