import { type BlockAddress, relationsOf, type TornList } from '@floe/domain'
import { expect, test } from 'vitest'
import { giversOf, judgeRecovery, type ListedMember } from './judge-recovery'

const heap = { tablespace: 1663, database: 5, relation: 16384, fork: 0 }
const blocksOf = (...blocks: number[]): BlockAddress[] => blocks.map((block) => ({ ...heap, block }))

const list = (of: Partial<TornList> & { torn?: BlockAddress[] } = {}): TornList => {
  const { torn = [], ...more } = of
  return {
    systemIdentifier: '7',
    role: 'standby',
    timeline: 3,
    redo: '0/1000000',
    end: '0/2000000',
    consistent: '0/2000000',
    segmentBytes: 16_777_216,
    blocks: torn.length,
    relations: relationsOf(torn),
    header: '',
    control: '0'.repeat(64),
    ...more,
  } as TornList
}
const member = (name: string, of: TornList | null, apart: ListedMember['apart'] = 'unknown-supply') =>
  ({
    instanceId: `id-${name}`,
    name,
    apart,
    list: of,
    why: of === null ? 'stopped' : null,
  }) satisfies ListedMember
const primary = (of: Partial<TornList> & { torn?: BlockAddress[] } = {}) =>
  member('a', list({ role: 'primary', redo: '0/1800000', end: '0/4002100', ...of } as never))
const judge = (p: ListedMember, ...standbys: ListedMember[]) => judgeRecovery('c', p, standbys)
const refused = (p: ListedMember, ...standbys: ListedMember[]) => {
  const judged = judge(p, ...standbys)
  if (judged.kind !== 'refused') throw new Error('not refused')
  return judged.fault
}

test('what is disjoint is brought: the standby’s blocks, and WAL from the segment of its end to the primary’s end', () => {
  const judged = judge(primary({ torn: blocksOf(1, 2) }), member('b', list({ torn: blocksOf(3, 4, 5) })))
  expect(judged).toEqual({
    kind: 'recover',
    recovery: {
      instanceId: 'id-b',
      name: 'b',
      blocks: 3,
      pageBytes: 3 * 8_220,
      timeline: 3,
      segmentBytes: 16_777_216,
      firstSegment: 2,
      // two segments, and one page and a bit of the third
      walBytes: 2 * 16_777_216 + 2 * 8_192,
      endLsn: '0/4002100',
      others: [],
      restored: 0,
    },
  })
})

test('WAL alone: a standby that is whole lacks what only the primary’s disk has', () => {
  expect(judge(primary({ torn: blocksOf(1) }), member('b', list()))).toMatchObject({
    kind: 'recover',
    recovery: { blocks: 0, pageBytes: 0, firstSegment: 2 },
  })
  // and one that has all of it gets none
  expect(judge(primary({ end: '0/2000000' as never }), member('b', list()))).toMatchObject({
    recovery: { walBytes: 0 },
  })
})

test('an end in the middle of a segment begins with that segment, one at its border with the next', () => {
  expect(judge(primary(), member('b', list({ end: '0/2000001' as never })))).toMatchObject({
    recovery: { firstSegment: 2 },
  })
  expect(judge(primary(), member('b', list({ end: '0/1FFFFFF' as never })))).toMatchObject({
    recovery: { firstSegment: 1 },
  })
})

test('what is torn on the primary, too, comes from a standby that begins recovery no earlier', () => {
  const a = primary({ torn: blocksOf(1, 2) })
  const b = member('b', list({ torn: blocksOf(2, 3) }))
  const c = (of: object = {}) =>
    member('c', list({ redo: '0/1400000', torn: blocksOf(1, 9), ...of } as never))
  expect(judge(a, b, c())).toMatchObject({
    kind: 'recover',
    recovery: { name: 'b', blocks: 2, others: [{ name: 'c', blocks: 1 }] },
  })
  expect(giversOf(a, b, [b, c()])?.map(({ block, from }) => [block.block, from?.name])).toEqual([
    [2, 'c'],
    [3, 'a'],
  ])
  // not the other way round: pages of b may lack changes from before c begins
  expect(giversOf(a, c(), [b, c()])?.map(({ from }) => from?.name)).toEqual([undefined, 'a'])
  expect(giversOf(a, b, [b, c({ redo: '0/1000000' })])?.[0]?.from?.name).toBe('c')
  const useless = [
    { torn: blocksOf(2) },
    { end: '0/4002101' },
    { timeline: 4 },
    { systemIdentifier: '8' },
    { role: 'primary' },
    { blocks: 3 },
  ]
  for (const of of useless) {
    expect(giversOf(a, b, [b, c(of)])?.[0]?.from, JSON.stringify(of)).toBe(null)
    expect(judge(a, b, c(of)).kind, JSON.stringify(of)).toBe('refused')
  }
  expect(giversOf(a, b, [b, c({ redo: '0/0FFFFFF' })])?.[0]?.from).toBe(null)
  // one that was stopped in order says nothing of where it would begin
  expect(giversOf(a, b, [b, member('c', null)])?.[0]?.from).toBe(null)
})

test('what both lists name is whole on neither side: named by relation and block, and no page is changed', () => {
  const fault = refused(primary({ torn: blocksOf(1, 2, 3) }), member('b', list({ torn: blocksOf(2, 3, 9) })))
  expect(fault.code).toBe('recover.whole_nowhere')
  expect(fault.message).toBe('2 pages of cluster "c" are whole neither on "a" nor on "b"')
  expect(fault.detail).toBe('base/5/16384, blocks 2-3.')
  expect(fault.hint).toMatch(
    /^No page was changed\. .*base backup.*on the host of "a".*WAL up to 0\/4002100.*"\.\/floe cluster recover c --confirm a --backup DIRECTORY --wal DIRECTORY"/,
  )
  // the same block of another fork is another block
  const map = blocksOf(2).map((b) => ({ ...b, fork: 2 }))
  expect(judge(primary({ torn: blocksOf(2) }), member('b', list({ torn: map }))).kind).toBe('recover')
})

test('with a base backup nothing is lost by the lists: it gives what is torn on the primary, too, and no other standby is asked', () => {
  const a = primary({ torn: blocksOf(1, 2) })
  const b = member('b', list({ torn: blocksOf(2, 3) }))
  const c = member('c', list({ redo: '0/1400000' as never, torn: blocksOf(1, 2, 9) }))
  expect(judge(a, b, c).kind).toBe('refused')
  expect(judgeRecovery('c', a, [b, c], { backup: true })).toMatchObject({
    kind: 'recover',
    recovery: { name: 'b', blocks: 2, others: [], restored: 1 },
  })
  // it makes up for torn pages, not for another history
  const ahead = member('b', list({ end: '0/4002101' as never, torn: blocksOf(1) }))
  expect(judgeRecovery('c', a, [ahead], { backup: true }).kind).toBe('refused')
})

test('what is not of one system, one timeline and one history is refused, and says why', () => {
  const cases: [Partial<TornList>, RegExp][] = [
    [{ systemIdentifier: '8' }, /"b": it is not a copy of the primary/],
    [{ timeline: 4 }, /timeline 4, the primary on 3/],
    [{ segmentBytes: 1_048_576 }, /segments are of another size/],
    [{ end: '0/4002101' as never }, /it has WAL up to 0\/4002101, the primary only up to 0\/4002100/],
    [{ redo: '0/1800001' as never }, /begins at 0\/1800001, and pages .* only up to 0\/1800000/],
    [{ role: 'primary' }, /it was no standby/],
    [{ blocks: 2 }, /as many blocks as it counts/],
  ]
  for (const [of, why] of cases) {
    const fault = refused(primary(), member('b', list(of)))
    expect(fault.code, String(why)).toBe('recover.no_standby')
    expect(fault.detail).toMatch(why)
    expect(fault.hint).toMatch(/^Nothing was changed/)
  }
  // a standby ahead of its primary tells of WAL that the primary lost
  expect(refused(primary(), member('b', list({ end: '0/4002101' as never }))).hint).toMatch(
    /fail over to "b"/,
  )
  const outside = blocksOf(1).map((b) => ({ ...b, tablespace: 16_400 }))
  expect(refused(primary(), member('b', list({ torn: outside }))).detail).toMatch(/tablespace 16400/)
})

test('a primary that was stopped in order, or was none, needs something else', () => {
  expect(refused(member('a', null), member('b', list())).code).toBe('recover.not_needed')
  expect(refused(primary({ role: 'standby' }), member('b', list())).code).toBe('recover.is_standby')
  expect(refused(primary()).detail).toMatch(/no standby whose host answers/)
  expect(refused(primary(), member('b', null)).hint).toMatch(/Start "b"\..*mode "immediate"/)
})

test('of several standbys one that shares no failure comes first, then the one that needs least', () => {
  const torn = blocksOf(5)
  const name = (...standbys: ListedMember[]) => {
    const judged = judge(primary({ torn: blocksOf(1) }), ...standbys)
    return judged.kind === 'recover' ? judged.recovery.name : null
  }
  expect(name(member('b', list(), 'same-supply'), member('c', list({ torn }), 'other-supply'))).toBe('c')
  expect(name(member('b', list({ torn })), member('c', list()))).toBe('c')
  expect(name(member('c', list({ torn })), member('b', list({ torn })))).toBe('b')
  // one that has nothing whole leaves it to the next
  expect(name(member('b', list({ torn: blocksOf(1) })), member('c', list({ torn })))).toBe('c')
  // and the loss that is told is the least
  const fault = refused(
    primary({ torn: blocksOf(1, 2) }),
    member('b', list({ torn: blocksOf(1, 2) })),
    member('c', list({ torn: blocksOf(2) })),
  )
  expect(fault.detail).toBe('base/5/16384, block 2.')
})
