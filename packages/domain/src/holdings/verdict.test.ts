import { expect, test } from 'vitest'
import type { InstanceId } from '../ids'
import type { Lsn } from '../lsn'
import { type Answer, type HoldingsRecord, judgeHoldings, proofSentence, type Verdict } from './verdict'

const answer = (name: string, state: Answer['state'], lsn: string | null): Answer => ({
  instanceId: name,
  name,
  hostName: `h-${name}`,
  state,
  end: lsn === null ? null : { timeline: 1, ancestors: [], lsn: lsn as Lsn },
})
const record = (more: Partial<HoldingsRecord> = {}): HoldingsRecord => ({
  primaryInstanceId: 'p',
  timeline: { timeline: 1, ancestors: [] },
  begun: [{ timeline: 1, begin: '0/0' as Lsn }],
  unsettled: [],
  rules: [{ count: 1, instanceIds: ['a', 'b'] as InstanceId[] }],
  commitMode: 'on',
  weaker: [],
  ...more,
})
const sentence = (v: Verdict) =>
  v.kind === 'proven' ? proofSentence(v.proof) : v.doubts.map((d) => d.code).join()
const isolated = [answer('a', 'isolated', '0/200'), answer('b', 'isolated', '0/100')]

test('nothing is said to be lost only where the end of the fenced primary is held', () => {
  const fenced = [answer('p', 'fenced', '0/200'), ...isolated]
  expect(sentence(judgeHoldings(record(), fenced, 'a'))).toBe(
    '"a" holds every commit that was acknowledged: nothing is lost.',
  )
  const silent = [answer('p', 'silent', null), ...isolated]
  expect(sentence(judgeHoldings(record(), silent, 'a'))).toBe(
    '"a" holds every commit that waited for standbys.',
  )
  expect(sentence(judgeHoldings(record({ commitMode: 'remote_write' }), silent, 'a'))).toContain(
    'provided that',
  )
})

test('a position of a primary that was not fenced is none to rely on: it may have gone on', () => {
  const running = [answer('p', 'primary', '0/200'), ...isolated]
  expect(judgeHoldings(record({ rules: [null] }), running, 'a')).toMatchObject({
    kind: 'unknown',
    doubts: [{ code: 'cluster.asynchronous' }],
  })
})

test('commits with synchronous_commit = off are never covered, and are named', () => {
  const fenced = [answer('p', 'fenced', '0/200'), ...isolated]
  const off = record({ weaker: [{ database: 'd', role: null, commitMode: 'off' }] })
  expect(sentence(judgeHoldings(off, fenced, 'a'))).toContain(
    'commits of database "d" (synchronous_commit = off)',
  )
  expect(sentence(judgeHoldings(record({ commitMode: 'off', rules: [null] }), fenced, 'a'))).toContain(
    'the cluster',
  )
})

test('what is not known is no proof', () => {
  const silent = [answer('p', 'silent', null), ...isolated]
  const doubts = (more: Partial<HoldingsRecord>, answers = silent) =>
    sentence(judgeHoldings(record(more), answers, 'a'))
  expect(doubts({ timeline: null })).toBe('history.unknown')
  expect(doubts({ timeline: { timeline: 2, ancestors: null } })).toBe('history.unknown')
  expect(doubts({ weaker: null })).toBe('commits.levels_unknown')
  expect(doubts({ rules: [] })).toBe('cluster.asynchronous')
  expect(doubts({}, [answer('p', 'silent', null), isolated[0] as Answer])).toBe('candidate.quorum_unseen')
  expect(doubts({}, [answer('a', 'isolated', null)])).toBe('candidate.position_unknown')
})

test('every member that was asked is in the proof, with what it holds', () => {
  const v = judgeHoldings(record(), [answer('p', 'fenced', '0/200'), ...isolated], 'a')
  expect(v.kind === 'proven' && v.proof.asked).toMatchObject([
    { name: 'p', state: 'fenced', relation: 'same', beyondBytes: 0 },
    { name: 'a', state: 'isolated', relation: 'same' },
    { name: 'b', state: 'isolated', relation: 'behind', beyondBytes: 0 },
  ])
})

test('a timeline whose number and beginning two primaries have in common proves nothing of what is on it', () => {
  const ancestors = [{ timeline: 1, end: '0/150' as Lsn }]
  const begun = (...second: string[]) => [
    { timeline: 1, begin: '0/0' as Lsn },
    ...second.map((begin) => ({ timeline: 2, begin: begin as Lsn })),
  ]
  const on = (timeline: number, lsn: string): Answer => ({
    ...answer('a', 'isolated', null),
    end: { timeline, ancestors: timeline === 2 ? ancestors : [], lsn: lsn as Lsn },
  })
  const doubts = (more: Partial<HoldingsRecord>, end: Answer) =>
    sentence(
      judgeHoldings(
        record({ timeline: { timeline: 2, ancestors }, begun: begun('0/150'), ...more }),
        [{ ...answer('p', 'fenced', null), end: on(2, '0/200').end }, end],
        'a',
      ),
    )
  expect(doubts({}, on(2, '0/200'))).toContain('nothing is lost')
  expect(doubts({ begun: begun('0/150', '0/150') }, on(2, '0/200'))).toBe('history.ambiguous')
  expect(doubts({ begun: begun('0/150', '0/140') }, on(2, '0/200'))).toContain('nothing is lost')
  // what is before the beginning is the same on both
  expect(doubts({ begun: begun('0/150', '0/150') }, on(1, '0/150'))).not.toContain('history.ambiguous')
  // it may have begun a timeline of that number itself, unless it came to this one before
  const promoted = (from: Answer['end']) => ({ unsettled: [{ instanceId: 'a' as InstanceId, from }] })
  expect(doubts(promoted(null), on(2, '0/200'))).toBe('history.ambiguous')
  expect(doubts(promoted(on(1, '0/150').end), on(2, '0/200'))).toBe('history.ambiguous')
  expect(doubts(promoted(on(2, '0/160').end), on(2, '0/200'))).toContain('nothing is lost')
})
