import { limitNames, limitRecord, noLimits } from '@floe/domain'
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { formatLimits, limitOptions, limitsAsked } from './instance-limit'

const parsed = (...words: string[]) =>
  limitsAsked(limitOptions(new Command()).parse(words, { from: 'user' }).opts())

test('every limit has an option, and what is left out stays', () => {
  expect(
    parsed('--cpu', '0.7', '--memory-max', '4GB', '--data-write-iops', '800', '--wal-read-bytes', 'none'),
  ).toEqual({
    cpu: 0.7,
    memoryMax: 4 * 1024 ** 3,
    dataWriteIops: 800,
    walReadBytes: null,
  })
  for (const name of limitNames)
    expect(parsed(`--${limitRecord(name).option}`, 'none')).toEqual({ [name]: null })
  expect(parsed()).toEqual({})
  expect(() => parsed('--memory-max', '4 gigabytes')).toThrow('invalid value for limit')
})

test('what is set, what is in force, and what cannot be are told apart', () => {
  const limits = { ...noLimits, cpu: 0.7, memoryHigh: 1024 ** 3 }
  const text = formatLimits({
    limits,
    observed: {
      driver: 'cgroup-v1',
      whyNot: null,
      ordered: limits,
      inForce: { ...noLimits, cpu: 0.7 },
      gaps: [{ limit: 'memoryHigh', why: 'cgroup v1 has no memory.high.' }],
      exempt: ['checkpointer'],
      devices: { data: 'vda', wal: 'vda' },
      memoryNearLimit: true,
      outOfMemoryKills: 2,
      unlimitedWriteBackBytes: 64 * 1024 ** 2,
    },
    host: { name: 'local', cpus: 2, memoryBytes: 8 * 1024 ** 3 },
    sums: [{ resource: 'cpu', limited: 2.7, size: 2, unlimited: 1, highOnly: 0, over: true }],
    history: [],
  })
  expect(text).toMatch(/CPU +0\.7 cores +0\.7 cores/)
  expect(text).toMatch(/Memory, high +1 GB +none/)
  expect(text).toContain('note          cgroup v1 has no memory.high.')
  expect(text).toContain('memory        near the limit')
  expect(text).toContain('killed        2 of its processes')
  expect(text).toContain('write-back    Up to 64 MB wait to be written back past the limit now.')
  expect(text).toContain(
    'cpu           of all instances on host local: 2.7 cores of 2 cores; 1 has none and may take all of it (over-committed)',
  )
})
