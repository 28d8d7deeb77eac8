import { Lsn } from '@floe/domain'
import { describe, expect, test } from 'vitest'
import { oneLoss, oneTable, rowsWordsOf } from './flashback-table'

const table = (schema: string, name: string, oid: number) => ({
  oid,
  schema,
  name,
  owner: 'owner',
  kind: 'table' as const,
  sizeBytes: 1,
  rowsEstimate: null,
  lastChangedAt: null,
  whyNot: null,
})

test('a table is named with its schema, or without where there is one of that name', () => {
  const tables = [table('public', 'a', 1), table('shop', 'b', 2), table('public', 'b', 3)]
  expect(oneTable(tables, 'a').oid).toBe(1)
  expect(oneTable(tables, 'shop.b').oid).toBe(2)
  expect(() => oneTable(tables, 'b')).toThrow('more than one table is named "b"')
  expect(() => oneTable(tables, 'c')).toThrow('table "c" does not exist')
})

describe('a loss', () => {
  const lost = (tableName: string, lsn: string, kind: 'dropped' | 'truncated' = 'dropped') => ({
    table: 1,
    tableName,
    kind,
    at: 0,
    lsn: Lsn.parse(lsn),
    sizeBytes: 1,
    restorableSince: null,
    definition: null,
  })

  test('is named by its table, and by its position where there are several', () => {
    const all = [lost('public.a', '0/1'), lost('public.a', '0/2'), lost('public.b', '0/3')]
    expect(oneLoss(all, 'b', undefined).lsn).toBe('0/3')
    expect(oneLoss(all, 'public.a', '0/2').lsn).toBe('0/2')
    expect(() => oneLoss(all, 'a', undefined)).toThrow('table "a" was lost more than once')
    expect(() => oneLoss(all, 'c', undefined)).toThrow('no table "c" was lost')
  })

  test('is a truncation where nothing was dropped, or where its position is named', () => {
    const truncated = lost('public.a', '0/1', 'truncated')
    expect(oneLoss([truncated], 'a', undefined)).toBe(truncated)
    const dropped = lost('public.a', '0/2')
    expect(oneLoss([truncated, dropped], 'a', undefined)).toBe(dropped)
    expect(oneLoss([truncated, dropped], 'a', '0/1')).toBe(truncated)
  })
})

test('rows are numbered as a merge selects them, and what strangers wrote steers no terminal', () => {
  const words = rowsWordsOf({
    columns: ['id', 'v\u001b[2J'],
    keyColumns: ['id'],
    samples: [
      { kind: 'removed', rowThen: ['1', null], rowNow: null },
      { kind: 'changed', rowThen: ['2', 'a'], rowNow: ['2', 'x\n3  added\u202e'] },
      { kind: 'added', rowThen: null, rowNow: ['4', 'b'] },
    ],
    conflictExample: null,
  })
  expect(words.split('\n')).toEqual([
    'no.  row      as    id  v\\u{1b}[2J',
    '1    removed  then  1   NULL',
    '2    changed  then  2   a',
    expect.stringMatching(/^ +now +2 +x\\u\{a\}3 {2}added\\u\{202e\}$/),
    '3    added    now   4   b',
  ])
})
