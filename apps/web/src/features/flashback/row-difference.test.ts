import { expect, test } from 'vitest'
import { columnOrder, isChanged, keyInWords, rowOrder, type SampleRow } from './row-difference'

const columns = ['note', 'id', 'total', 'paid']
const changed: SampleRow = {
  kind: 'changed',
  rowThen: ['a', '12', '5', null],
  rowNow: ['a', '12', '6', null],
}
const removed: SampleRow = { kind: 'removed', rowThen: ['b', '13', '7', 't'], rowNow: null }

test('only a column of a row that is there both times can have changed, and NULL is a value', () => {
  expect(columns.map((_, i) => isChanged(changed, i))).toEqual([false, false, true, false])
  expect(columns.map((_, i) => isChanged(removed, i))).toEqual([false, false, false, false])
  const nulled: SampleRow = { ...changed, rowNow: [null, '12', '5', null] }
  expect(isChanged(nulled, 0)).toBe(true)
})

test('the key and the columns that differ come first', () => {
  expect(columnOrder(columns, ['id'], [changed, removed])).toEqual([1, 2, 0, 3])
  expect(columnOrder(columns, null, [removed])).toEqual([0, 1, 2, 3])
})

test('a row is named by its key', () => {
  expect(keyInWords(removed, columns, ['id'])).toBe('id 13')
  expect(keyInWords(removed, columns, ['id', 'note'])).toBe('id 13, note b')
  expect(keyInWords(removed, columns, null)).toBeNull()
})

test('rows are shown in the order of their keys, and keep their places', () => {
  const row = (...key: string[]): SampleRow => ({ kind: 'removed', rowThen: ['', ...key], rowNow: null })
  expect(rowOrder([row('10'), row('9'), row('100')], ['note', 'id'], ['id'])).toEqual([1, 0, 2])
  expect(rowOrder([row('b', '1'), row('a', '2'), row('a', '1')], ['note', 'x', 'y'], ['x', 'y'])).toEqual([
    2, 1, 0,
  ])
  expect(rowOrder([row('2'), row('1')], ['note', 'id'], null)).toEqual([0, 1])
})
