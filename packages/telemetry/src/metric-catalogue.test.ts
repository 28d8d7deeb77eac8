import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { countedRates, counters, metricDefinition, metrics } from './metric-catalogue'

test('a metric keeps its position for ever: stored samples are arrays', () => {
  const golden = readFileSync(new URL('../golden/metrics.txt', import.meta.url), 'utf8')
  // after an addition: npm run golden -w @floe/telemetry
  expect(metrics.map(({ name }) => name)).toEqual(golden.trimEnd().split('\n'))
})

test('names are unique, of metrics and of counters', () => {
  for (const named of [metrics, counters])
    expect(new Set(named.map(({ name }) => name)).size).toBe(named.length)
})

test('a counter says what its reset is seen by', () => {
  expect(counters).toContainEqual({ name: 'wal_fpi_bytes', reset: 'wal_fpi_reset' })
  // of no metric's name: something is computed from it
  expect(counters).toContainEqual({ name: 'active_time', reset: 'databases_reset' })
  expect(counters).toContainEqual({ name: 'process_cpu_time', reset: null })
})

test('what is the growth of one counter is a rate, and tps is not', () => {
  for (const name of countedRates) expect(metricDefinition(name).kind).toBe('rate')
  expect(countedRates).toContain('wal_bytes')
  expect(countedRates).not.toContain('tps')
})
