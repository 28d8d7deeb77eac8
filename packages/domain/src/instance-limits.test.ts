import { describe, expect, test } from 'vitest'
import {
  changedLimits,
  formatLimit,
  hasMemoryHigh,
  InstanceLimits,
  LimitChanges,
  limitNames,
  limitRecord,
  limitSumWords,
  limitText,
  noLimits,
  parseLimit,
  sumLimits,
  whyNoLimits,
  withLimits,
} from './instance-limits'

const GB = 1024 ** 3
const limits = (changes: LimitChanges): InstanceLimits => withLimits(noLimits, changes)

test('what is left out stays, null takes a limit away', () => {
  const before = limits({ cpu: 0.7, dataWriteIops: 800 })
  const after = withLimits(before, LimitChanges.parse({ cpu: null, memoryMax: 4 * GB }))
  expect(after).toEqual({ ...noLimits, dataWriteIops: 800, memoryMax: 4 * GB })
  expect(changedLimits(before, after)).toEqual([
    { name: 'cpu', before: 0.7, after: null },
    { name: 'memoryMax', before: null, after: 4 * GB },
  ])
})

test('limits of a side that does not know all of them are read, and those are none', () => {
  expect(InstanceLimits.parse({ cpu: 1, tomorrow: 9 })).toEqual({ ...noLimits, cpu: 1 })
})

test('what would stop the engine is refused, and so is a high above the max', () => {
  expect(whyNoLimits(noLimits)).toBeNull()
  for (const name of limitNames) {
    const { least } = limitRecord(name)
    expect(whyNoLimits(limits({ [name]: least }))).toBeNull()
    expect(whyNoLimits(limits({ [name]: least / 2 }))?.code).toBe('limit.out_of_range')
  }
  expect(whyNoLimits(limits({ memoryHigh: 4 * GB, memoryMax: 3 * GB }))).toMatchObject({
    code: 'limit.high_above_max',
    detail: 'High is 4 GB, max is 3 GB.',
  })
  expect(whyNoLimits(limits({ dataReadIops: 100.5 }))?.code).toBe('limit.not_whole')
  for (const name of limitNames)
    expect(whyNoLimits(limits({ [name]: 1e308 }))?.code).toBe('limit.out_of_range')
})

describe('a limit in words', () => {
  test.each([
    ['cpu', '0.7', 0.7, '0.7 cores'],
    ['cpu', '1', 1, '1 core'],
    ['memoryMax', '4GB', 4 * GB, '4 GB'],
    ['memoryHigh', '1.5 GB', 1.5 * GB, '1536 MB'],
    ['dataWriteIops', '800', 800, '800 IOPS'],
    ['walWriteBytes', '50MB', 50 * 1024 ** 2, '50 MB/s'],
    ['walReadBytes', 'none', null, 'none'],
  ] as const)('%s %s', (name, text, value, shown) => {
    expect(parseLimit(name, text)).toBe(value)
    expect(formatLimit(name, value)).toBe(shown)
    expect(parseLimit(name, limitText(name, value))).toBe(value)
  })

  test.each([
    ['cpu', '70%'],
    ['cpu', '1GB'],
    ['cpu', '0'],
    ['memoryMax', '4gb'],
    ['memoryMax', '-4GB'],
    ['dataReadIops', '8.5'],
    ['dataReadIops', '1e3'],
    ['dataReadIops', ''],
  ] as const)('%s %s is none', (name, text) => {
    expect(() => parseLimit(name, text)).toThrow('invalid value for limit')
  })
})

test('sums are compared with the host, and an instance without a limit is counted', () => {
  const host = { cpus: 2, memoryBytes: 8 * GB, memoryHigh: true }
  const tenths = Array.from({ length: 20 }, () => limits({ cpu: 0.1, memoryMax: GB }))
  expect(sumLimits([...tenths, noLimits], host)).toEqual([
    { resource: 'cpu', limited: expect.closeTo(2), size: 2, unlimited: 1, highOnly: 0, over: false },
    { resource: 'memory', limited: 20 * GB, size: 8 * GB, unlimited: 1, highOnly: 0, over: true },
  ])
})

test('a high limit of memory counts where there is no maximum, and nowhere else', () => {
  const host = { cpus: 2, memoryBytes: 8 * GB, memoryHigh: hasMemoryHigh(['cgroup-v2', null]) }
  const all = [
    limits({ memoryHigh: 3 * GB }),
    limits({ memoryHigh: GB, memoryMax: 2 * GB }),
    limits({ cpu: 1 }),
  ]
  const [, memory] = sumLimits(all, host)
  expect(memory).toEqual({
    ...{ resource: 'memory', limited: 5 * GB, size: 8 * GB, over: false },
    ...{ unlimited: 1, highOnly: 1 },
  })
  expect(memory && limitSumWords(memory)).toBe(
    '5 GB of 8 GB; 1 is counted with the high limit alone, which can be exceeded; 1 has none and may take all of it',
  )
  // cgroup v1 has no such limit: with it alone an instance may take all there is
  expect(sumLimits(all, { ...host, memoryHigh: hasMemoryHigh(['cgroup-v1', null]) })[1]).toMatchObject({
    ...{ limited: 2 * GB, unlimited: 2, highOnly: 0 },
  })
})
