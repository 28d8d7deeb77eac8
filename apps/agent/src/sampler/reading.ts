import { crc32 } from 'node:zlib'
import {
  type CounterName,
  type CounterReset,
  countedRates,
  counterResets,
  counters,
  type MetricValues,
  metrics,
} from '@floe/telemetry'

const counterNames = counters.map(({ name }) => name)

/** Names of everything a reading holds, in the order it is stored. */
const readingFields = [
  'at',
  'monotonic',
  'uncertainty',
  'postmasterStart',
  'ownTransactions',
  'ownTime',
] as const

/** What one tick read: moments in ms, counters as they stand, gauges as they are. */
export type Reading = {
  /** Wall clock and monotonic clock (CLOCK_MONOTONIC) of the tick. */
  at: number
  monotonic: number
  /** How far the monotonic clock's moment may be off: half the round trip. */
  uncertainty: number
  /** Start of this life of the postmaster: counters of another life are not comparable. */
  postmasterStart: number
  /** Transactions and active time of the agent's own session between this reading and the next. */
  ownTransactions: number
  ownTime: number
  counters: Partial<Record<CounterName, number>>
  resets: Partial<Record<CounterReset, number>>
  gauges: MetricValues
}

/** A row of the tick statement as a reading. Unknown (null) stays out. */
export function readingFromRow(
  row: Record<string, unknown>,
  monotonic: number,
  uncertainty: number,
): Reading {
  const number = (name: string) => {
    const value = row[name]
    return typeof value === 'number' && Number.isFinite(value) ? value : undefined
  }
  const reading: Reading = {
    at: number('at') as number,
    monotonic,
    uncertainty,
    postmasterStart: number('postmaster_start') as number,
    ownTransactions: 1,
    ownTime: number('own_time') ?? 0,
    counters: {},
    resets: {},
    gauges: {},
  }
  for (const name of counterNames) {
    const value = number(name)
    if (value !== undefined) reading.counters[name] = value
  }
  for (const name of counterResets) reading.resets[name] = number(name) ?? 0
  for (const m of metrics) {
    const value = m.kind === 'gauge' ? number(m.name) : undefined
    if (value !== undefined) reading.gauges[m.name] = value
  }
  return reading
}

/**
 * Two clocks show how long it was between two readings. The engine's stands in the same row as the counters and is the
 * exact one, unless somebody set it in between: then the monotonic one is right.
 */
export function intervalMs(before: Reading, after: Reading): number {
  const wall = after.at - before.at
  const monotonic = after.monotonic - before.monotonic
  const tolerance = 250 + before.uncertainty + after.uncertainty
  return Math.abs(wall - monotonic) < tolerance ? wall : monotonic
}

const resetOf = new Map<CounterName, CounterReset | null>(counters.map(({ name, reset }) => [name, reset]))

/**
 * The sample's values between two readings, or null when they cannot be compared: another postmaster, or no time between.
 * A counter that was reset or went backwards yields no rate; nothing is ever negative or made up.
 */
export function valuesBetween(
  before: Reading,
  after: Reading,
): { intervalMs: number; values: MetricValues } | null {
  const interval = intervalMs(before, after)
  if (before.postmasterStart !== after.postmasterStart || !(interval > 0)) return null
  const seconds = interval / 1_000
  const growth = (name: CounterName): number | undefined => {
    const a = before.counters[name]
    const b = after.counters[name]
    const reset = resetOf.get(name) ?? null
    if (a === undefined || b === undefined || b < a) return undefined
    if (reset !== null && before.resets[reset] !== after.resets[reset]) return undefined
    return b - a
  }
  const values: MetricValues = { ...after.gauges }
  for (const name of countedRates) {
    const grown = growth(name)
    if (grown !== undefined) values[name] = grown / seconds
  }
  const commits = growth('xact_commit')
  const rollbacks = growth('xact_rollback')
  if (commits !== undefined) values.xact_commit = Math.max(0, commits - before.ownTransactions) / seconds
  if (commits !== undefined && rollbacks !== undefined) {
    const transactions = Math.max(0, commits - before.ownTransactions) + rollbacks
    values.tps = transactions / seconds
    const active = growth('active_time')
    if (active !== undefined && transactions > 0)
      values.xact_active_time = Math.max(0, active - before.ownTime) / transactions
  }
  const hit = growth('blks_hit')
  const read = growth('blks_read')
  if (hit !== undefined && read !== undefined && hit + read > 0) values.cache_hit_ratio = hit / (hit + read)
  const cpu = growth('process_cpu_time')
  if (cpu !== undefined) values.process_cpu = cpu / seconds
  return { intervalMs: interval, values }
}

/** Says what the numbers of a stored reading are: an agent of another version may have other counters, or another order. */
const layout = crc32([...readingFields, ...counterResets, ...counterNames].join())

/** A reading as numbers in a fixed order, for the ring's trailer. */
export function encodeReading(r: Reading): Float64Array {
  return Float64Array.from([
    layout,
    ...readingFields.map((f) => r[f]),
    ...counterResets.map((n) => r.resets[n] ?? Number.NaN),
    ...counterNames.map((n) => r.counters[n] ?? Number.NaN),
  ])
}

/** Inverse of encodeReading, without gauges; null when it was written by an agent with other counters. */
export function decodeReading(numbers: Float64Array): Reading | null {
  if (numbers[0] !== layout) return null
  let i = 1
  const next = () => numbers[i++] as number
  const [at, monotonic, uncertainty, postmasterStart, ownTransactions, ownTime] = readingFields.map(next) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const known = <N extends string>(names: readonly N[]) =>
    Object.fromEntries(names.map((n) => [n, next()] as const).filter(([, v]) => !Number.isNaN(v))) as Partial<
      Record<N, number>
    >
  const resets = known(counterResets)
  const counters = known(counterNames)
  return {
    at,
    monotonic,
    uncertainty,
    postmasterStart,
    ownTransactions,
    ownTime,
    resets,
    counters,
    gauges: {},
  }
}
