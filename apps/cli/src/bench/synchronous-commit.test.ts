import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compareModes, percentile, readLatencies } from './synchronous-commit'

test('latencies are those of pgbench’s log, in ms, over the files of all its threads', () => {
  const directory = mkdtempSync(join(tmpdir(), 'floe-test-'))
  try {
    writeFileSync(join(directory, 'pgbench_log.1'), '0 1 1500 0 1700000000 1\n1 1 2500 0 1700000000 2\n')
    writeFileSync(join(directory, 'pgbench_log.1.1'), '2 1 500 0 1700000000 3\n')
    writeFileSync(join(directory, 'other'), '2 1 99999 0 1 3\n')
    expect(readLatencies(directory).sort()).toEqual([0.5, 1.5, 2.5])
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('a percentile is a value that was measured', () => {
  const values = Array.from({ length: 100 }, (_, i) => 100 - i)
  expect(percentile(values, 0.99)).toBe(99)
  expect(percentile(values, 0.5)).toBe(50)
  expect(percentile([7], 0.99)).toBe(7)
  expect(percentile([], 0.99)).toBeNaN()
})

test('the levels stand side by side with their shares of "off" and of "on", and what was published', () => {
  const tps = { remote_apply: 900, on: 1_000, remote_write: 1_500, local: 2_000, off: 4_000.4 }
  const { headings, rows } = compareModes(
    (mode) => tps[mode],
    (mode) => (mode === 'on' ? 31.26 : 10),
  )
  expect(headings).toHaveLength(rows[0]?.length ?? 0)
  expect(rows).toEqual([
    ['remote_apply', 900, 10, 0.22, 0.9, null, null],
    ['on', 1_000, 31.3, 0.25, 1, 1_052, 0.28],
    ['remote_write', 1_500, 10, 0.37, 1.5, 1_711, 0.45],
    ['local', 2_000, 10, 0.5, 2, 2_447, 0.65],
    ['off', 4_000, 10, 1, 4, 3_774, 1],
  ])
})
