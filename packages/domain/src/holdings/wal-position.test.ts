import { expect, test } from 'vitest'
import type { Lsn } from '../lsn'
import {
  along,
  beginningOf,
  parseTimelineHistory,
  relate,
  type Timeline,
  type WalPosition,
} from './wal-position'

const at = (lsn: string, timeline: number, ...ancestors: [number, string][]): WalPosition => ({
  timeline,
  lsn: lsn as Lsn,
  ancestors: ancestors.map(([number, end]) => ({ timeline: number, end: end as Lsn })),
})
const related = (a: WalPosition, b: WalPosition) => {
  const r = relate(a, b)
  return r && `${r.kind} from ${r.until}`
}

test('on one timeline positions relate as their LSNs do', () => {
  expect(related(at('0/200', 1), at('0/100', 1))).toBe('ahead from 0/100')
  expect(related(at('0/100', 1), at('0/200', 1))).toBe('behind from 0/100')
  expect(related(at('0/100', 1), at('0/100', 1))).toBe('same from 0/100')
  expect(related(at('0/FFFFFFFF', 1), at('1/0', 1))).toBe('behind from 0/FFFFFFFF')
})

test('across timelines they relate by where those parted, not by LSN', () => {
  const two = at('0/180', 2, [1, '0/100'])
  expect(related(at('0/80', 1), two)).toBe('behind from 0/80')
  expect(related(at('0/100', 1), two)).toBe('behind from 0/100')
  expect(related(at('0/900', 1), two)).toBe('diverged from 0/100')
  expect(related(two, at('0/101', 1))).toBe('diverged from 0/100')
  expect(related(at('0/180', 3, [1, '0/100'], [2, '0/180']), two)).toBe('same from 0/180')
})

test('timelines of one number that began elsewhere are two', () => {
  expect(related(at('0/180', 2, [1, '0/100']), at('0/180', 2, [1, '0/120']))).toBe('diverged from 0/100')
})

test('what has only begun a timeline, or not come to it yet, is where it was', () => {
  expect(related(at('0/100', 2, [1, '0/100']), at('0/100', 1))).toBe('same from 0/100')
  expect(related(at('0/80', 2, [1, '0/100']), at('0/90', 1))).toBe('behind from 0/80')
})

test('a history that is unknown, or that contradicts itself, is unknown', () => {
  const unknown = { ...at('0/100', 2), ancestors: null }
  expect(relate(unknown, at('0/100', 1))).toBeNull()
  expect(relate(unknown, unknown)).toBeNull()
  expect(relate(null, at('0/100', 1))).toBeNull()
  expect(relate(at('0/100', 2, [2, '0/80']), at('0/100', 1))).toBeNull()
  expect(relate(at('0/400', 3, [1, '0/200'], [2, '0/100']), at('0/400', 1))).toBeNull()
})

test('how far WAL goes along a timeline, and whether it left', () => {
  const two: Timeline = { timeline: 2, ancestors: [{ timeline: 1, end: '0/100' as Lsn }] }
  expect(along(at('0/80', 1), two)).toMatchObject({ reach: { lsn: '0/80' }, left: false })
  expect(along(at('0/120', 1), two)).toMatchObject({ reach: { lsn: '0/100' }, left: true })
  expect(along(at('0/120', 2, [1, '0/100']), two)).toMatchObject({ reach: { lsn: '0/120' }, left: false })
  expect(along(at('0/190', 3, [1, '0/100'], [2, '0/150']), two)).toMatchObject({
    reach: { lsn: '0/150' },
    left: true,
  })
  expect(beginningOf(two)).toEqual(at('0/100', 1))
})

test('a history file is read as PostgreSQL writes it, and nothing else is', () => {
  const text = '1\t0/3000110\tno recovery target specified\n\n2\t0/5000028\tno recovery target specified\n'
  expect(parseTimelineHistory(text)).toEqual([
    { timeline: 1, end: '0/3000110' },
    { timeline: 2, end: '0/5000028' },
  ])
  expect(parseTimelineHistory('# made by hand\n1 0/1 x\n')).toEqual([{ timeline: 1, end: '0/1' }])
  expect(parseTimelineHistory('2\t0/1\n1\t0/2\n')).toBeNull()
  expect(parseTimelineHistory('what is this')).toBeNull()
})
