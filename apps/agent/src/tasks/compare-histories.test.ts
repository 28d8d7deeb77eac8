import type { Lsn } from '@floe/domain'
import { expect, test } from 'vitest'
import { endNamedByWaldump, walFileName } from './compare-histories'

const MB16 = 16n * 1024n * 1024n
const end = (stderr: string, start: string) => endNamedByWaldump(stderr, start as Lsn, MB16)

test('WAL ends at the record that is none', () => {
  expect(
    end(
      'pg_waldump: error: error in WAL record at 0/50276F0: invalid record length at 0/5027818: expected at least 24, got 0',
      '0/5019E10',
    ),
  ).toBe('0/5027818')
})

test('WAL that fills its last segment ends where the next one would begin', () => {
  const text = 'pg_waldump: error: could not find file "000000020000000A00000007": No such file or directory'
  expect(end(text, 'A/6000028')).toBe('A/7000000')
  expect(end(text, 'A/7000000')).toBe('A/7000000')
})

test('without the segment to start in nothing is known', () => {
  const text = 'pg_waldump: error: could not find file "000000020000000A00000007": No such file or directory'
  expect(end(text, 'A/7000028')).toBeNull()
  expect(end('pg_waldump: error: could not open directory', 'A/7000028')).toBeNull()
})

test('names of segments follow the size of a segment', () => {
  expect(walFileName(2, 0x0a_07n, MB16)).toBe('000000020000000A00000007')
  expect(walFileName(0x1f, 5n, 1024n * 1024n * 1024n)).toBe('0000001F0000000100000001')
})
