import { describe, expect, it } from 'vitest'
import { comparedMs, comparedTimes, requestSize, requestsOf } from './last-change-of-size'

const reads = requestsOf('polar_bulk_read_size')
if (!reads) throw new Error('a bulk size without requests')

const point = (at: number, bytes: number | null, requests: number | null, intervalMs = 1_000) => ({
  at,
  seq: null,
  intervalMs,
  gapBefore: false,
  average: [requests, bytes],
  maximum: null,
})
const metrics: ('io_reads' | 'io_read_bytes')[] = ['io_reads', 'io_read_bytes']

describe('the times that are compared', () => {
  const change = (at: number, oldValue: string, newValue: string) => ({ at, oldValue, newValue })

  it('are ten minutes on both sides, without the seconds around the change', () => {
    expect(comparedTimes([change(5_000_000, '1MB', '4MB')])).toEqual({
      at: 5_000_000,
      before: { from: 5_000_000 - comparedMs, to: 4_995_000 },
      after: { from: 5_005_000, to: 5_000_000 + comparedMs },
    })
  })

  it('do not reach beyond the change before', () => {
    const changes = [change(5_000_000, '1MB', '4MB'), change(4_900_000, '2MB', '1MB')]
    expect(comparedTimes(changes)?.before).toEqual({ from: 4_905_000, to: 4_995_000 })
  })

  it('are those of a change that changed something', () => {
    const changes = [change(6_000_000, '4MB', '4MB'), change(5_000_000, '1MB', '4MB')]
    expect(comparedTimes(changes)?.at).toBe(5_000_000)
    expect(comparedTimes([change(6_000_000, '4MB', '4MB')])).toBeNull()
  })
})

describe('the average request', () => {
  const range = { from: 10_000, to: 20_000 }

  it('weighs each sample by its requests and its time, not by its number', () => {
    const points = [point(12_000, 8_192 * 10, 10, 1_000), point(16_000, 131_072 * 10, 10, 4_000)]
    const size = requestSize({ points, metrics }, reads, range)
    expect(size).toEqual({
      known: true,
      bytesPerRequest: (8_192 + 4 * 131_072) / 5,
      requests: 50,
      measuredMs: 5_000,
    })
  })

  it('leaves out a sample that lies only partly in the time', () => {
    const points = [point(10_500, 8_192, 1), point(15_000, 16_384, 1), point(20_001, 8_192, 1)]
    expect(requestSize({ points, metrics }, reads, range)).toMatchObject({
      bytesPerRequest: 16_384,
      requests: 1,
    })
  })

  it('is unknown where nothing was measured, which is not the same as no request', () => {
    expect(requestSize({ points: [], metrics }, reads, range)).toEqual({ known: false, why: 'unmeasured' })
    const unknown = [point(15_000, null, null)]
    expect(requestSize({ points: unknown, metrics }, reads, range)).toEqual({
      known: false,
      why: 'unmeasured',
    })
    const idle = [point(15_000, 0, 0)]
    expect(requestSize({ points: idle, metrics }, reads, range)).toEqual({ known: false, why: 'none' })
  })
})

it('a bulk size has the requests that it makes larger, if they are counted', () => {
  expect(requestsOf('polar_bulk_write_size')?.bytes).toBe('io_write_bytes')
  expect(requestsOf('polar_bulk_extend_size')?.requests).toBe('io_extends')
  expect(requestsOf('polar_index_create_bulk_extend_size')).toBeNull()
  expect(requestsOf('full_page_writes')).toBeNull()
})
