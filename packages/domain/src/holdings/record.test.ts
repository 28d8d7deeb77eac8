import { expect, test } from 'vitest'
import type { InstanceId } from '../ids'
import type { Lsn } from '../lsn'
import {
  afterReport,
  type ClusterHoldings,
  promotedAs,
  ruleOfNames,
  unknownHoldings,
  withPrimary,
  withRule,
} from './record'

const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}` as InstanceId
const members = [1, 2, 3].map((n) => ({ instanceId: id(n), name: `m-${n}` }))
const any1 = { count: 1, instanceIds: [id(2), id(3)] }
const report = (endLsn: string, names: string, flushed: [string, string][] = []) => ({
  endLsn: endLsn as Lsn,
  timeline: 1,
  ancestors: [],
  commitModes: [],
  synchronousStandbyNames: names,
  synchronousCommit: 'on',
  standbys: flushed.map(([applicationName, flushedLsn]) => ({
    applicationName,
    state: 'streaming',
    flushedLsn: flushedLsn as Lsn,
  })) as never,
})
const NAMES = 'ANY 1 ("m-2", "m-3")'

test('names are read back as the members they are, and any others as none', () => {
  expect(ruleOfNames(NAMES, members)).toEqual(any1)
  expect(ruleOfNames('FIRST 2 ("m-2", "m-3")', members)).toEqual({ ...any1, count: 2 })
  for (const names of ['', '*', 'ANY 1 (*)', 'ANY 1 ("m-2", "foreign")', 'm-2', 'ANY 1 ("m-2", m_3)'])
    expect(ruleOfNames(names, members), names).toBeNull()
})

test('a set counts alone only once it has confirmed what was written before it was in force', () => {
  const first = afterReport(unknownHoldings(), report('0/100', NAMES), members, null)
  expect(first.holdings).toMatchObject({ timeline: { timeline: 1 }, rules: [null, any1], weaker: null })
  const behind = afterReport(first.holdings, report('0/200', NAMES, [['m-2', '0/FF']]), members, first.since)
  expect(behind.holdings.rules).toEqual([null, any1])
  // what was written since need not be confirmed
  const there = afterReport(
    behind.holdings,
    report('0/300', NAMES, [['m-3', '0/100']]),
    members,
    behind.since,
  )
  expect(there.holdings).toMatchObject({ rules: [any1], weaker: [] })
  const strangers = report('0/300', NAMES, [['psql', '0/900']])
  expect(afterReport(behind.holdings, strangers, members, behind.since).holdings.rules).toEqual([null, any1])
})

test('a set that is about to be in force counts beside the one that was, until it is alone', () => {
  const any2 = { ...any1, count: 2 }
  const asked = withRule({ ...unknownHoldings(), rules: [any1] }, any2)
  expect(asked.rules).toEqual([any1, any2])
  const old = afterReport(asked, report('0/100', NAMES), members, null)
  expect(old.holdings.rules).toEqual([any2, any1])
})

test('a level of a role stays on record until commits without it are confirmed', () => {
  const known: ClusterHoldings = { ...unknownHoldings(), rules: [any1], weaker: [] }
  const local = { database: null, role: 'batch', commitMode: 'local' }
  const set = {
    ...report('0/100', NAMES),
    commitModes: [local, { ...local, role: 'safe', commitMode: 'on' }],
  }
  const weaker = afterReport(known, set, members, null)
  expect(weaker.holdings.weaker).toEqual([local])
  const reset = afterReport(weaker.holdings, report('0/200', NAMES), members, weaker.since)
  expect(reset.holdings.weaker).toEqual([local])
  const done = afterReport(reset.holdings, report('0/300', NAMES, [['m-2', '0/200']]), members, reset.since)
  expect(done.holdings.weaker).toEqual([])
  const { commitModes: _left, ...older } = report('0/300', NAMES)
  expect(afterReport(done.holdings, older, members, done.since).holdings.weaker).toBeNull()
})

test('nothing is settled before what is in force counts alone: a floor that is turned on later does', () => {
  const known: ClusterHoldings = { ...unknownHoldings(), rules: [any1], weaker: [] }
  const floored = (endLsn: string, flushed: [string, string][] = []) => ({
    ...report(endLsn, NAMES, flushed),
    commitFloor: 'on',
  })
  const before = afterReport(known, report('0/100', NAMES), members, null)
  expect(before).toMatchObject({ settled: true, holdings: { floor: false } })
  const first = afterReport(before.holdings, floored('0/100'), members, before.since)
  expect(first).toMatchObject({ settled: false, holdings: { rules: [any1], floor: false } })
  const behind = afterReport(first.holdings, floored('0/200', [['m-2', '0/FF']]), members, first.since)
  expect(behind.settled).toBe(false)
  const there = afterReport(behind.holdings, floored('0/200', [['m-2', '0/100']]), members, behind.since)
  expect(there).toMatchObject({ settled: true, holdings: { rules: [any1], floor: true } })
  // turned off again it counts at once
  expect(afterReport(there.holdings, report('0/200', NAMES), members, there.since)).toMatchObject({
    settled: true,
    holdings: { floor: false },
  })
})

test('of a promoted member counts what it answered itself, and nothing of the primary before it', () => {
  const local = { database: null, role: 'batch', commitMode: 'local' }
  const before: ClusterHoldings = { ...unknownHoldings(), rules: [null], weaker: [local] }
  const ancestors = [{ timeline: 1, end: '0/100' as Lsn }]
  const answer = { timeline: 2, ancestors, standbyNames: NAMES, synchronousCommit: 'on', commitModes: [] }
  const known = withPrimary(before, promotedAs(answer, members))
  expect(known).toMatchObject({ timeline: { timeline: 2 }, rules: [any1], weaker: [] })
  // reports that come later change nothing of that
  expect(afterReport(known, report('0/200', NAMES), members, null).holdings).toMatchObject({
    rules: [any1],
    weaker: [],
  })
  const modes = [local, { ...local, role: 'safe', commitMode: 'remote_apply' }]
  expect(promotedAs({ ...answer, commitModes: modes }, members).weaker).toEqual([local])
  const silent: Partial<typeof answer>[] = [{ commitModes: undefined }, { commitModes: null as never }]
  for (const less of silent)
    expect(
      withPrimary({ ...before, weaker: [] }, promotedAs({ ...answer, ...less }, members)).weaker,
    ).toBeNull()
  for (const less of [{ standbyNames: null }, { synchronousCommit: null }, { synchronousCommit: 'local' }])
    expect(promotedAs({ ...answer, ...less }, members).rule, JSON.stringify(less)).toBeNull()
})

test('the timeline of a primary is taken from its report once, and not while a promotion is open', () => {
  const two = { ...report('0/200', ''), timeline: 2, ancestors: [{ timeline: 1, end: '0/100' as Lsn }] }
  const first = afterReport(unknownHoldings(), two, members, null).holdings
  expect(first).toMatchObject({ timeline: { timeline: 2 }, begun: [{ timeline: 2, begin: '0/100' }] })
  expect(afterReport(first, report('0/200', ''), members, null).holdings.timeline).toMatchObject({
    timeline: 2,
  })
  const unsettled = {
    ...unknownHoldings(),
    promotions: [{ instanceId: id(2), operationId: id(9), step: 'promote', attempt: 1, from: null }],
  }
  expect(afterReport(unsettled, two, members, null).holdings.timeline).toBeNull()
})
