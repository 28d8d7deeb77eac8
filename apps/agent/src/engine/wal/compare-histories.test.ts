import { expect, test } from 'vitest'
import { endNamedByWaldump, parseHistory } from './compare-histories'
import { walFileName } from './wal-file'

const MB16 = 16n * 1024n * 1024n

test('WAL ends at the record that is none', () => {
  expect(
    endNamedByWaldump(
      'pg_waldump: error: error in WAL record at 0/50276F0: invalid record length at 0/5027818: expected at least 24, got 0',
    ),
  ).toBe('0/5027818')
  expect(
    endNamedByWaldump(
      'pg_waldump: error: error in WAL record at 0/50276F0: unexpected pageaddr 0/3000000 in WAL segment 000000010000000000000007, LSN 0/7000000, offset 0',
    ),
  ).toBe('0/7000000')
  expect(endNamedByWaldump('pg_waldump: error: could not find a valid record after 0/7000028')).toBe(
    '0/7000028',
  )
})

test('where it did not begin with a record, or could not read, nothing is known', () => {
  expect(
    endNamedByWaldump(
      'pg_waldump: first record is after 0/6000028, at 0/6000100, skipping over 216 bytes\npg_waldump: error: error in WAL record at 0/6000100: invalid record length at 0/6000200: expected at least 24, got 0',
    ),
  ).toBeNull()
  expect(endNamedByWaldump('pg_waldump: error: could not open directory "0/1"')).toBeNull()
})

test('names of segments follow the size of a segment', () => {
  expect(walFileName(2, 0x0a_07n, MB16)).toBe('000000020000000A00000007')
  expect(walFileName(0x1f, 5n, 1024n * 1024n * 1024n)).toBe('0000001F0000000100000001')
})

test('a history is its timelines with their ends; the last one goes on', () => {
  expect(parseHistory('', 1)).toEqual([{ timeline: 1, begin: '0/0', end: null }])
  expect(parseHistory('1\t0/5000148\tno recovery target specified\n\n2\t0/6000000\tx\n', 4)).toEqual([
    { timeline: 1, begin: '0/0', end: '0/5000148' },
    { timeline: 2, begin: '0/5000148', end: '0/6000000' },
    { timeline: 4, begin: '0/6000000', end: null },
  ])
})
