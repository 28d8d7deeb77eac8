import { expect, test } from 'vitest'
import { observeStep } from './observe-step'

const STARTED_MS = 1_000_000
const seen = (state: string, afterMs: number | null, postmasterPid: number | null = null) => ({
  state,
  because: `it is ${state}`,
  observedAt: afterMs === null ? null : new Date(STARTED_MS + afterMs),
  postmasterPid,
})
const run = (observation: object, more: object = {}) =>
  observeStep('running', 'start').run({
    step: { startedAt: new Date(STARTED_MS) },
    results: { start: { postmasterPid: 42 } },
    cancelAskedAt: null,
    readObservation: async () => observation,
    ...more,
  } as never)

test('it has succeeded when the postmaster that was started is reported, not the one before it', async () => {
  expect(await run(seen('running', 100, 42))).toMatchObject({ word: 'next' })
  expect(await run(seen('running', 100, 41))).toMatchObject({ word: 'wait' })
  expect(await run(seen('running', null, 42))).toMatchObject({ word: 'wait' })
})

test('it fails when the instance has ended again, by a report that is of after its start', async () => {
  for (const state of ['crashed', 'stopped'])
    expect(await run(seen(state, 3_001))).toMatchObject({
      word: 'fail',
      fault: { code: 'instance.ended_early', detail: `it is ${state}` },
    })
  // of before the start, or of a moment that may be: the clocks differ
  expect(await run(seen('stopped', 3_000))).toMatchObject({ word: 'wait' })
  expect(await run(seen('starting', 10_000))).toMatchObject({ word: 'wait' })
})

test('a cancel does not wait for what may never be reported', async () => {
  expect(await run(seen('starting', 100), { cancelAskedAt: new Date() })).toMatchObject({ word: 'next' })
})
