import { expect, test } from 'vitest'
import { Pace } from './pace'

const MB = 1024 ** 2

/** Lets so many bytes be done in each second; answers what was foretold after each. */
function run(pace: Pace, perSecond: readonly number[], totalBytes: number | null, from = { s: 0, bytes: 0 }) {
  let done = from.bytes
  return perSecond.map((bytes, i) => {
    const at = (from.s + i + 1) * 1_000
    done += bytes
    pace.see(done, totalBytes, at)
    return pace.work(at)?.remainingMs ?? null
  })
}
const seconds = (n: number, bytes: number) => new Array<number>(n).fill(bytes)

test('nothing is foretold before anything was measured', () => {
  const pace = new Pace()
  expect(pace.work(0)).toBeNull()
  const foretold = run(pace, seconds(8, MB), 100 * MB)
  expect(foretold.slice(0, 5)).toEqual([null, null, null, null, null])
  expect(foretold[5]).toBeCloseTo(94_000, -2)
})

test('the time before the first byte is not the work’s', () => {
  const pace = new Pace()
  const foretold = run(pace, [...seconds(20, 0), ...seconds(10, MB)], 100 * MB)
  expect(foretold[20]).toBeNull()
  // the first second's bytes came at an unknown moment within it
  expect(foretold.at(-1)).toBeGreaterThan(80_000)
  expect(foretold.at(-1)).toBeLessThan(100_000)
})

test('even work is foretold to its end', () => {
  const foretold = run(new Pace(), seconds(100, MB), 100 * MB)
  foretold.forEach((ms, i) => {
    if (ms !== null) expect(Math.abs(ms - (99 - i) * 1_000)).toBeLessThan(500)
  })
})

test('uneven work does not make it jump', () => {
  // each second either nothing or double
  const foretold = run(
    new Pace(),
    Array.from({ length: 90 }, (_, i) => (i % 2 ? 2 * MB : 0)),
    200 * MB,
  )
  for (let i = 12; i < foretold.length; i++)
    expect(Math.abs((foretold[i] as number) - (foretold[i - 1] as number))).toBeLessThan(10_000)
})

test('a pace that changes is followed within a minute, without a jump', () => {
  const pace = new Pace()
  const fast = run(pace, seconds(60, 10 * MB), 10_000 * MB)
  const slow = run(pace, seconds(90, 2 * MB), 10_000 * MB, { s: 60, bytes: 600 * MB })
  const all = [...fast, ...slow]
  const last = all.at(-1) as number
  const right = ((10_000 - 600 - 180) / 2) * 1_000
  expect(Math.abs(last - right) / right).toBeLessThan(0.1)
  for (let i = 61; i < all.length; i++) expect((all[i] as number) / (all[i - 1] as number)).toBeLessThan(1.25)
})

test('work that stands still has no end in sight, at last, and one again when it goes on', () => {
  const pace = new Pace()
  run(pace, seconds(40, MB), 1_000 * MB)
  const stalled = run(pace, seconds(40, 0), 1_000 * MB, { s: 40, bytes: 40 * MB })
  expect(stalled[5]).toBeGreaterThan(960_000)
  expect(stalled.at(-1)).toBeNull()
  // also when nobody says anything any more
  const silent = new Pace()
  run(silent, seconds(40, MB), 1_000 * MB)
  expect(silent.work(50_000)?.remainingMs).not.toBeNull()
  expect(silent.work(80_000)).toEqual({ doneBytes: 40 * MB, totalBytes: 1_000 * MB, remainingMs: null })
  const again = run(pace, seconds(10, MB), 1_000 * MB, { s: 80, bytes: 40 * MB })
  expect(again.at(-1)).not.toBeNull()
})

test('without a total, or beyond it, the rest is not known; another try is measured anew', () => {
  expect(run(new Pace(), seconds(20, MB), null).at(-1)).toBeNull()
  expect(run(new Pace(), seconds(20, MB), 10 * MB).at(-1)).toBeNull()
  const pace = new Pace()
  run(pace, seconds(20, MB), 100 * MB)
  pace.see(0, 100 * MB, 21_000)
  expect(pace.work(21_000)).toEqual({ doneBytes: 0, totalBytes: 100 * MB, remainingMs: null })
})
