import { expect, test } from 'vitest'
import { type BlockAddress, relationPath, relationsOf, TornList, tornBlocks, tornWords } from './torn-list'

const heap = { tablespace: 1663, database: 5, relation: 16384, fork: 0 }
const at = (block: number, of = heap): BlockAddress => ({ ...of, block })

test('blocks become ranges and blocks again, in the order of the list', () => {
  const blocks = [at(7), at(9), at(10), at(11), at(3, { ...heap, fork: 2 }), at(1)]
  const relations = relationsOf(blocks)
  expect(relations.map((r) => [r.fork, r.blocks])).toEqual([
    [0, '7 9-11'],
    [2, '3'],
    [0, '1'],
  ])
  expect(tornBlocks({ relations, blocks: 6 })).toEqual(blocks)
})

test('a list that does not name what it counts is no list', () => {
  const of = (blocks: string, count: number) =>
    tornBlocks({ relations: [{ ...heap, blocks }], blocks: count })
  expect(of('1-3', 2)).toBeNull()
  expect(of('1-3', 4)).toBeNull()
  expect(of('0-4294967294', 3)).toBeNull()
  expect(of('3-1', 0)).toBeNull()
  expect(of('4294967295', 1)).toBeNull()
  expect(of('../../etc', 1)).toBeNull()
  expect(of('', 0)).toBeNull()
})

test('numbers have bounds, and a path is none of them', () => {
  const list = {
    systemIdentifier: '7',
    role: 'standby',
    timeline: 1,
    redo: '0/1',
    end: '0/2',
    consistent: '0/2',
    segmentBytes: 16_777_216,
    blocks: 1,
    relations: [{ ...heap, blocks: '7' }],
    header: '',
    control: '0'.repeat(64),
  }
  expect(TornList.safeParse(list).success).toBe(true)
  for (const wrong of [
    { blocks: 250_001 },
    { segmentBytes: 0 },
    { timeline: 0 },
    { control: '../global/pg_control' },
    { redo: '0/1/../2' },
    { relations: [{ ...heap, relation: 'base/5/16384', blocks: '7' }] },
    { relations: [{ ...heap, fork: 4, blocks: '7' }] },
    { relations: [{ ...heap, blocks: '../7' }] },
    { relations: [{ ...heap, relation: -1, blocks: '7' }] },
    { relations: [{ ...heap, database: 1.5, blocks: '7' }] },
  ])
    expect(TornList.safeParse({ ...list, ...wrong }).success, JSON.stringify(wrong)).toBe(false)
})

test('where a relation lies follows from numbers', () => {
  expect(relationPath(heap)).toBe('base/5/16384')
  expect(relationPath({ ...heap, fork: 1 })).toBe('base/5/16384_fsm')
  expect(relationPath({ ...heap, tablespace: 1664, database: 0 })).toBe('global/16384')
  expect(relationPath({ ...heap, tablespace: 16400 })).toBeNull()
  expect(tornWords({ ...heap, blocks: '7 9-11' })).toBe('base/5/16384, blocks 7 9-11')
  expect(tornWords({ ...heap, tablespace: 16400, blocks: '7' })).toBe(
    'relation 16384 of database 5 in tablespace 16400, block 7',
  )
})
