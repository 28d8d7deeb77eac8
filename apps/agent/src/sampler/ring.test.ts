import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SampleRing } from './ring'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-ring-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const sample = (i: number) => ({
  at: 1_000_000 + i * 1_000,
  intervalMs: 1_000,
  values: { tps: i, wal_bytes: i * 10 },
})
const trailer = (i: number) => Float64Array.from([i, Number.NaN, i * 2])
const fill = (ring: SampleRing, from: number, to: number) => {
  for (let i = from; i < to; i++) ring.append(sample(i), trailer(i))
}

test('numbers go on and nothing is lost when the process ends without closing', () => {
  fill(new SampleRing(directory), 0, 650)
  const after = new SampleRing(directory)
  expect([after.oldestSeq, after.newestSeq]).toEqual([0, 649])
  expect(after.trailer?.[2]).toBe(649 * 2)
  expect(after.append(sample(650), trailer(650))).toBe(650)
  const all = after.read(-1, 3_600)
  expect(all.map((s) => s.seq)).toEqual(Array.from({ length: 651 }, (_, i) => i))
  expect(all[333]).toEqual({ seq: 333, ...sample(333) })
})

test('reading after a number yields exactly what follows, over segment borders and up to the limit', () => {
  const ring = new SampleRing(directory)
  fill(ring, 0, 700)
  expect(ring.read(298, 4).map((s) => s.seq)).toEqual([299, 300, 301, 302])
  expect(ring.read(699, 10)).toEqual([])
  expect(ring.read(5_000, 10)).toEqual([])
})

test('unknown values stay unknown', () => {
  const ring = new SampleRing(directory)
  ring.append({ at: 1, intervalMs: 1_000, values: { tps: 0 } }, trailer(0))
  expect(ring.read(-1, 1)[0]?.values).toEqual({ tps: 0 })
})

test('samples older than the ring are dropped by segment, and at least 60 minutes stay', () => {
  const ring = new SampleRing(directory)
  fill(ring, 0, 5_000)
  const oldest = ring.oldestSeq as number
  expect(oldest).toBeGreaterThan(0)
  expect(4_999 - oldest).toBeGreaterThanOrEqual(3_600)
  expect(readdirSync(directory).length).toBeLessThan(16)
})

test('a record cut off in the middle costs that record only', () => {
  fill(new SampleRing(directory), 0, 10)
  const [file] = readdirSync(directory) as [string]
  const path = join(directory, file)
  truncateSync(path, statSync(path).size - 100)
  const after = new SampleRing(directory)
  expect(after.newestSeq).toBe(8)
  expect(after.append(sample(9), trailer(9))).toBe(9)
  expect(after.read(8, 5)).toEqual([{ seq: 9, ...sample(9) }])
})

test('a file that is no segment is put away', () => {
  fill(new SampleRing(directory), 0, 3)
  appendFileSync(join(directory, '000000000000003.samples'), 'nonsense')
  const after = new SampleRing(directory)
  expect(after.newestSeq).toBe(2)
})

describe('without room', () => {
  const seqs = (ring: SampleRing, after = -1) => ring.read(after, 3_600).map((s) => s.seq)
  const named = (seq: number) => join(directory, `${String(seq).padStart(15, '0')}.samples`)
  /** Every write to it fails with ENOSPC, as on a full disk. */
  const takeRoom = (seq: number) => symlinkSync('/dev/full', named(seq))

  test('the ring goes on in memory with the same numbers, says so once, and writes them down when there is room', () => {
    const told: unknown[] = []
    const ring = new SampleRing(directory, 60, (error) => told.push((error as Error | null)?.message ?? null))
    fill(ring, 0, 300)
    // the next segment would begin here
    takeRoom(300)
    fill(ring, 300, 305)
    expect(told).toHaveLength(1)
    expect(told[0]).toContain('ENOSPC')
    expect(seqs(ring, 297)).toEqual([298, 299, 300, 301, 302, 303, 304])
    expect(ring.read(301, 1)).toEqual([{ seq: 302, ...sample(302) }])
    expect(ring.newestSeq).toBe(304)
    fill(ring, 305, 330)
    expect(told).toEqual([told[0], null])
    const after = new SampleRing(directory)
    expect(seqs(after)).toEqual(Array.from({ length: 330 }, (_, i) => i))
    expect(after.trailer?.[2]).toBe(329 * 2)
  })

  test('what is kept in memory is bounded: the oldest go', () => {
    const told: unknown[] = []
    const ring = new SampleRing(directory, 60, (error) => told.push(error))
    for (let i = 0; i < 3_000; i += 10) {
      // whatever file the ring tries next, there is no room for it
      const oldest = ring.oldestSeq ?? 0
      for (let n = oldest; n <= oldest + 11; n++) {
        rmSync(named(n), { force: true })
        takeRoom(n)
      }
      fill(ring, i, i + 10)
    }
    expect(told).toHaveLength(1)
    const kept = seqs(ring)
    expect(kept.at(-1)).toBe(2_999)
    expect(kept).toHaveLength(900)
  })
})
