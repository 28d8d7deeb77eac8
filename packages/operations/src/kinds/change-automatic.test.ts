import type { ClusterObserved } from '@floe/domain'
import { expect, test } from 'vitest'
import { changeAutomatic, whyNotAutomatic } from './change-automatic'

const member = (name: string, change: object = {}) => ({
  instanceId: name,
  name,
  hostId: `host-${name}`,
  hostName: `h-${name}`,
  hostState: 'online',
  state: 'running',
  role: name === 'p' ? 'primary' : 'standby',
  memberRole: name === 'p' ? 'primary' : 'standby',
  replication: { commitFloor: 'on', standbys: [] },
  ...change,
})
/** Three members on three hosts, whose commits wait for any standby. */
const cluster = (change: object = {}, ...members: object[]) =>
  ({
    primaryInstanceId: 'p',
    commitMode: 'on',
    synchronous: { method: 'any', count: 1, instanceIds: ['a', 'b'], strict: true },
    holdings: { timeline: { timeline: 3, ancestors: [] } },
    members: [member('p'), member('a'), ...(members.length > 0 ? members : [member('b')])],
    ...change,
  }) as unknown as ClusterObserved
const on = { automatic: { afterMs: 10_000 } } as never

test('it is turned on where every member can be held back, and the primary’s timeline is known', () => {
  expect(whyNotAutomatic(cluster(), on)).toBeNull()
  expect(whyNotAutomatic(cluster({ synchronous: null }), on)?.code).toBe('automatic.asynchronous')
  expect(whyNotAutomatic(cluster({ holdings: null }), on)?.code).toBe('automatic.timeline_unknown')
})

test('a member whose agent cannot record it now would start as a primary by itself: that is refused', () => {
  const away = { code: 'automatic.member_away' }
  expect(whyNotAutomatic(cluster({}, member('b', { state: 'stopped' })), on)).toMatchObject({
    ...away,
    message: 'instance "b" is stopped',
  })
  expect(whyNotAutomatic(cluster({}, member('b', { hostState: 'unreachable' })), on)).toMatchObject({
    ...away,
    message: 'instance "b" is on host "h-b", which does not answer',
  })
  // a fenced one does not start
  const fenced = member('c', { memberRole: 'fenced', state: 'stopped' })
  expect(whyNotAutomatic(cluster({}, member('b'), fenced), on)).toBeNull()
})

test('it can be turned off whatever has become of the cluster', () => {
  const gone = cluster({ synchronous: null, holdings: null }, member('b', { hostState: 'unreachable' }))
  expect(whyNotAutomatic(gone, { automatic: null })).toBeNull()
})

test('turned on, the floor comes before agents hold members back, and goes after that when it is turned off', () => {
  const steps = (automatic: object | null) =>
    changeAutomatic.plan({ automatic } as never, { state: 'running' }).map(({ name }) => name)
  expect(steps({ afterMs: 10_000 })).toEqual(['check', 'floor', 'tell', 'observe'])
  expect(steps(null)).toEqual(['check', 'tell', 'floor'])
})
