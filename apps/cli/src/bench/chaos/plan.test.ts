import { expect, test } from 'vitest'
import { configurations, formatConfiguration } from './configurations'
import { faults } from './faults'
import { plan } from './plan'

const of = (seed: number, rounds: number) =>
  plan(seed, rounds, faults, configurations).map(
    ({ fault, configuration, chance }) => [fault.id, formatConfiguration(configuration), chance] as const,
  )

test('a seed decides every round, and another seed decides otherwise', () => {
  expect(of(7, 60)).toEqual(of(7, 60))
  expect(of(7, 60)).not.toEqual(of(8, 60))
  // a longer run begins with the shorter one
  expect(of(7, 60).slice(0, 8)).toEqual(of(7, 8))
})

test('sixty rounds hold every fault twice and every configuration', () => {
  for (const seed of [0, 1, 2, 3, 99]) {
    const rounds = of(seed, 60)
    for (const { id } of faults)
      expect(rounds.filter(([fault]) => fault === id).length).toBeGreaterThanOrEqual(2)
    expect(new Set(rounds.map(([, words]) => words)).size).toBe(configurations.length)
  }
})

test('no fault comes again before all have come', () => {
  expect(new Set(of(5, faults.length).map(([fault]) => fault)).size).toBe(faults.length)
})

test('every fault meets every configuration once in faults × configurations rounds', () => {
  const all = faults.length * configurations.length
  const pairs = of(1, all).map(([fault, words]) => `${fault} ${words}`)
  expect(new Set(pairs).size).toBe(all)
  // whatever the numbers of both are
  for (const [f, c] of [
    [20, 25],
    [25, 25],
    [3, 7],
    [9, 6],
    [30, 4],
  ] as const) {
    const numbers = (n: number) => Array.from({ length: n }, (_, i) => i)
    const met = plan(3, f * c, numbers(f), numbers(c)).map((r) => `${r.fault}-${r.configuration}`)
    expect(new Set(met).size).toBe(f * c)
  }
})

test('configurations are every set with every level, and no two are alike', () => {
  const words = configurations.map(formatConfiguration)
  expect(new Set(words).size).toBe(words.length)
  expect(words).toContain('asynchronous, off')
  expect(words).toContain('FIRST 1 strict, remote_apply')
  expect(words).toContain('ANY 1, on')
})

test('faults have names of their own', () => {
  expect(new Set(faults.map((f) => f.id)).size).toBe(faults.length)
})
