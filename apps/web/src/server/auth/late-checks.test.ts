import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LateChecks } from './late-checks'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Asks `times` times for a check that notes its name; the answers so far are in `answered`. */
function asking() {
  const late = new LateChecks(1_000)
  const run: string[] = []
  const answered: (string | null)[] = []
  const ask = (origin: string, name = origin, signal?: AbortSignal) =>
    late
      .take(
        origin,
        async () => {
          run.push(name)
          return name
        },
        signal,
      )
      .then((answer) => void answered.push(answer))
  return { late, run, answered, ask }
}

test('checks are run one a second, the first of all late, too', async () => {
  const { run, ask } = asking()
  for (let n = 0; n < 3; n++) ask('a', `a${n}`)
  await vi.advanceTimersByTimeAsync(999)
  expect(run).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(run).toEqual(['a0'])
  await vi.advanceTimersByTimeAsync(2_000)
  expect(run).toEqual(['a0', 'a1', 'a2'])
  ask('a', 'a3')
  await vi.advanceTimersByTimeAsync(999)
  expect(run).toHaveLength(3)
})

test('the next one waits until the one before has ended, also when it failed', async () => {
  const { late, run, ask } = asking()
  let end = (_: Error) => {}
  const failed = late.take('a', () => new Promise((_, reject) => (end = reject))).catch(String)
  ask('a')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(run).toEqual([])
  end(new Error('the database is away'))
  expect(await failed).toBe('Error: the database is away')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(run).toEqual(['a'])
})

test('a stranger who keeps asking has ten places, and those who come take turns with it', async () => {
  const { run, answered, ask } = asking()
  for (let n = 0; n < 50; n++) ask('stranger')
  await vi.advanceTimersByTimeAsync(0)
  expect(answered).toEqual(Array(40).fill(null))
  ask('owner')
  await vi.advanceTimersByTimeAsync(2_000)
  expect(run).toEqual(['stranger', 'owner'])
})

test('twenty wait at most, and one that has few waiting displaces one that has most', async () => {
  const { run, answered, ask } = asking()
  for (const stranger of ['x', 'y']) for (let n = 0; n < 10; n++) ask(stranger)
  ask('owner')
  await vi.advanceTimersByTimeAsync(0)
  expect(answered).toEqual([null])
  await vi.advanceTimersByTimeAsync(3_000)
  expect(run).toEqual(['x', 'y', 'owner'])
  await vi.advanceTimersByTimeAsync(60_000)
  expect(run).toHaveLength(20)
  // as many strangers as there are places: nobody has more than another
  for (let n = 0; n < 20; n++) ask(`stranger ${n}`)
  ask('owner')
  await vi.advanceTimersByTimeAsync(0)
  expect(answered.slice(21)).toEqual([null])
})

test('who gives up leaves the queue', async () => {
  const { run, answered, ask } = asking()
  const givenUp = new AbortController()
  ask('a', 'a', givenUp.signal)
  ask('b')
  givenUp.abort()
  await vi.advanceTimersByTimeAsync(0)
  expect(answered).toEqual([null])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(run).toEqual(['b'])
  ask('c', 'c', givenUp.signal)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(run).toEqual(['b'])
})
