import { expect, test } from 'vitest'
import { inPhases } from './in-phases'
import type { Needs } from './suite'

/** What ran beside each, by name, where each suite takes as many turns as it is told. */
async function besides(suites: { name: string; needs: Needs; turns: number }[]) {
  const running = new Set<string>()
  const beside: Record<string, Set<string>> = {}
  const began: string[] = []
  const answers = await inPhases(
    suites.map((suite) => ({ suite })),
    async ({ suite }) => {
      began.push(suite.name)
      const mine = new Set(running)
      beside[suite.name] = mine
      for (const other of running) beside[other]?.add(suite.name)
      running.add(suite.name)
      for (let turn = 0; turn < suite.turns; turn++) await new Promise(setImmediate)
      running.delete(suite.name)
      return suite.name
    },
  )
  expect(answers.toSorted()).toEqual(suites.map(({ name }) => name).toSorted())
  return { beside: (name: string) => [...(beside[name] ?? [])].sort(), began }
}

test('what needs the users of instances runs beside what reads the checkout, and beside nothing else', async () => {
  const { beside } = await besides([
    { name: 'lint', needs: 'checkout', turns: 2 },
    { name: 'types', needs: 'checkout', turns: 2 },
    { name: 'unit', needs: 'own', turns: 5 },
    { name: 'hostile', needs: 'users', turns: 9 },
  ])
  expect(beside('hostile')).toEqual(['lint', 'types'])
  expect(beside('lint')).toEqual(['hostile'])
  expect(beside('unit')).toEqual([])
})

test('what reads the checkout keeps nothing waiting but its own lane', async () => {
  const { beside } = await besides([
    { name: 'types', needs: 'checkout', turns: 20 },
    { name: 'hostile', needs: 'users', turns: 3 },
    { name: 'unit', needs: 'own', turns: 3 },
    { name: 'engine', needs: 'own', turns: 3 },
  ])
  expect(beside('types')).toEqual(['engine', 'hostile', 'unit'])
  expect(beside('unit')).toEqual(['types'])
})

test('of those with installations of their own two run at a time, begun in order', async () => {
  const { beside, began } = await besides([
    { name: 'unit', needs: 'own', turns: 20 },
    { name: 'engine', needs: 'own', turns: 5 },
    { name: 'journeys', needs: 'own', turns: 5 },
    { name: 'launcher', needs: 'own', turns: 3 },
  ])
  expect(began).toEqual(['unit', 'engine', 'journeys', 'launcher'])
  expect(beside('unit')).toEqual(['engine', 'journeys', 'launcher'])
  expect(beside('journeys')).toEqual(['unit'])
})
