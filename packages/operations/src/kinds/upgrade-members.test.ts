import { expect, test } from 'vitest'
import { PATIENCE } from '../patience'
import { upgradeMembers } from './upgrade-members'

const steps = (input: object) =>
  upgradeMembers
    .plan({ primary: 'p', members: ['a', 'p'], switchover: true, ...input } as never, { state: 'running' })
    .map(({ name }) => name)

test('standbys move first, and a primary as the standby that it becomes', () => {
  const named = steps({})
  expect(named.slice(0, 3)).toEqual(['compare', 'standbys', 'observe-standbys'])
  expect(named.slice(-3)).toEqual(['former', 'observe-former', 'seen'])
  expect(named).not.toContain('primary')
})

test('without a standby that can take over the primary is restarted, after the standbys', () => {
  expect(steps({ switchover: false })).toEqual([
    'compare',
    'standbys',
    'observe-standbys',
    'primary',
    'observe-primary',
    'seen',
  ])
  expect(steps({ members: ['p'], switchover: false })).toEqual([
    'compare',
    'primary',
    'observe-primary',
    'seen',
  ])
})

test('a primary that is not named stays where it is', () => {
  expect(steps({ members: ['a'] })).toEqual(['compare', 'standbys', 'observe-standbys', 'seen'])
})

const member = (name: string, change: object = {}) => ({
  instanceId: `i-${name}`,
  name,
  hostState: 'online',
  state: 'running',
  because: null,
  ...change,
})
async function compared(members: object[], primaryInstanceId = 'i-p') {
  const outcome = await upgradeMembers.steps.compare.run({
    input: { primary: 'p', members: ['a', 'p'], build: 'release-1', switchover: true },
    step: { startedAt: new Date(0) },
    now: new Date(600_000),
    atWorkSince: new Date(0),
    patience: PATIENCE,
    cancelAskedAt: null,
    readCluster: async () => ({ name: 'demo', primaryInstanceId, members }),
  } as never)
  return outcome.word === 'fail' ? outcome.fault.code : outcome
}

test('a plan that is no longer true moves nobody', async () => {
  const standbys = [{ applicationName: 'a', state: 'streaming' }]
  const p = member('p', { replication: { standbys } })
  expect(await compared([p, member('a')])).toMatchObject({ word: 'next', result: { following: ['i-a'] } })
  expect(await compared([p, member('a')], 'i-a')).toBe('cluster.moved')
  expect(await compared([p])).toBe('cluster.no_member')
  expect(await compared([p, member('a', { state: 'stopped' })])).toBe('instance.not_running')
  expect(await compared([p, member('a', { hostState: 'unreachable' })])).toBe('instance.not_running')
})
