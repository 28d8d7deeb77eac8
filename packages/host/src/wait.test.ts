import { expect, test } from 'vitest'
import { listenFor, pause, waitFor, waitUntil } from './wait'

const soon = { boundMs: 5_000, everyMs: 1 }

test('what is waited for is answered as soon as it is there, and looked for at least once', async () => {
  let looks = 0
  expect(await waitFor(() => (++looks === 3 ? 'there' : null), soon)).toBe('there')
  expect(looks).toBe(3)
  expect(await waitFor(async () => 'at once', { boundMs: 0, everyMs: 1 })).toBe('at once')
})

test('each pause may be told by what has gone before', async () => {
  const pauses = [1, 2, 3]
  let looks = 0
  const everyMs = () => pauses.shift() as number
  expect(await waitFor(() => ++looks === 4, { boundMs: 5_000, everyMs })).toBe(true)
  expect(pauses).toEqual([])
})

test('after the bound there is nothing, and who waits no more is told at once', async () => {
  expect(await waitFor(() => false, { boundMs: 5, everyMs: 1 })).toBeNull()
  const signal = AbortSignal.abort(new Error('given up'))
  await expect(waitFor(() => true, { ...soon, signal })).rejects.toThrow('given up')
})

test('waiting in vain names what was waited for, with the last error as the cause', async () => {
  await expect(waitUntil('it rains', () => null, 5, 1)).rejects.toThrow('waited 5 ms in vain until it rains')
  const error: Error = await waitUntil('it rains', () => Promise.reject(new Error('no sky')), 5, 1).catch(
    (thrown) => thrown,
  )
  expect(error.cause).toMatchObject({ message: 'no sky' })
})

test('an error on the way is no end of the waiting', async () => {
  let looks = 0
  const look = () => {
    if (++looks < 3) throw new Error('not yet')
    return looks
  }
  expect(await waitUntil('it answers', look, 5_000, 1)).toBe(3)
})

test('a pause passes, and is cut short by its signal, also by one that was given before', async () => {
  const began = performance.now()
  await pause(20)
  // a timer may be early by a fraction of a millisecond
  expect(performance.now() - began).toBeGreaterThan(18)
  const signal = new AbortController()
  const hour = pause(3_600_000, signal.signal)
  signal.abort()
  await hour
  await pause(3_600_000, signal.signal)
})

test('who stood still for longer than the deadline listens for most of it afterwards', async () => {
  let overAt: number | null = null
  listenFor(200, () => {
    overAt = performance.now()
  })
  // nothing of this process runs for longer than the deadline
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
  const resumed = performance.now()
  const at = await waitUntil('the deadline', () => overAt, 5_000, 1)
  expect(at - resumed).toBeGreaterThan(100)
})

test('a deadline that is called off does not come', async () => {
  let over = false
  const callOff = listenFor(5, () => {
    over = true
  })
  callOff()
  let passed = false
  listenFor(20, () => {
    passed = true
  })
  await waitUntil('a longer one has passed', () => passed, 5_000, 1)
  expect(over).toBe(false)
})
