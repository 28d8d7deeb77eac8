import { expect, test } from 'vitest'
import { startProgress } from './start-progress'

const startup = (message: string, detail?: string) => ({
  backend_type: 'startup',
  error_severity: 'LOG',
  message,
  detail,
})
const interrupted = startup('database system was interrupted; last known up at 2026-11-26 02:00:00 UTC')
const ahead = (seconds: string, lsn: string) =>
  startup(`page repair reads WAL ahead, elapsed time: ${seconds} s, current LSN: ${lsn}`)
const verifies = (part: number) =>
  startup(`page repair verifies pages, elapsed time: 20.10 s, part ${part} of 8, 123456 pages read, 17 torn`)
const fetches = (done: number) =>
  startup(`page repair fetches pages, elapsed time: 30.10 s, ${done} of 1000 pages`)
const repaired = startup('page repair: 200000 blocks named by WAL, 150000 read and verified, 20 torn')

test('each part of a start is told of by how far it is', () => {
  const entries = [interrupted]
  const next = (entry: ReturnType<typeof startup>) => startProgress([...entries, entry])
  expect(startProgress(entries)).toBeNull()
  expect(next(ahead('12.34', '5/3A0000D8'))).toBe('page repair reads WAL ahead: at 5/3A0000D8 after 12 s')
  expect(next(ahead('185.00', '5/FF000000'))).toBe(
    'page repair reads WAL ahead: at 5/FF000000 after 3 min 5 s',
  )
  expect(next(verifies(1))).toBe('page repair verifies pages: 0 %, 123456 read, 17 torn, after 20 s')
  expect(next(verifies(8))).toBe('page repair verifies pages: 87 %, 123456 read, 17 torn, after 20 s')
  expect(next(fetches(0))).toBe('page repair fetches pages: 0 %, 0 of 1000, after 30 s')
  expect(next(fetches(768))).toBe('page repair fetches pages: 76 %, 768 of 1000, after 30 s')
  expect(next(startup('fetching WAL for page repair, elapsed time: 1.00 s, current: 0/4000000'))).toBe(
    'page repair fetches WAL: at 0/4000000 after 1.0 s',
  )
  expect(next(startup('redo in progress, elapsed time: 10.00 s, current LSN: 0/5000000'))).toBe(
    'WAL is replayed: at 0/5000000 after 10 s',
  )
  expect(
    next(startup('syncing data directory (fsync), elapsed time: 10.00 s, current path: ./base/5/16384, x')),
  ).toBe('files are prepared for recovery, after 10 s')
})

test('the newest counts, and what has ended is not told of any more', () => {
  expect(startProgress([interrupted, ahead('10.00', '0/1000000'), ahead('20.00', '0/2000000')])).toMatch(
    /at 0\/2000000 after 20 s/,
  )
  expect(startProgress([interrupted, verifies(8), fetches(256)])).toMatch(/^page repair fetches pages: 25 %/)
  expect(startProgress([interrupted, ahead('10.00', '0/1000000'), repaired])).toBeNull()
  // another start, or another crash, after the one that was told of
  expect(startProgress([interrupted, ahead('10.00', '0/1000000'), interrupted])).toBeNull()
})

test('a recovery that waits for a source says for which, and why', () => {
  const why = 'Source "h2:5432/postgres": connection refused.'
  expect(startProgress([interrupted, startup('recovery waits for a page repair source', why)])).toBe(
    `recovery waits for a page repair source: ${why}`,
  )
  const endless = startup('recovery waits for a page repair source', 'x'.repeat(10_000))
  expect(startProgress([endless])).toHaveLength(1_000)
})

test('nobody but the process that recovers is heard', () => {
  expect(startProgress([{ ...ahead('10.00', '0/1000000'), backend_type: 'client backend' }])).toBeNull()
  expect(startProgress([startup(`x ${ahead('10.00', '0/1000000').message}`)])).toBeNull()
})
