import type { IncidentKind } from '@floe/domain'
import { expect, test } from 'vitest'
import type { Incident } from '@/server/api'
import { actionOf, placesOf } from './incident-places'

const placesOfKind = (kind: IncidentKind | 'of-an-earlier-version') =>
  placesOf({ key: `${kind}:1`, instanceName: 'demo', hostName: 'here' } as Incident).map((p) => p.href)

test('an incident leads to the page where its kind is dealt with', () => {
  expect(placesOfKind('setting-drift')).toEqual(['/instances/demo/settings', '/hosts/here'])
  expect(placesOfKind('commits-wait')).toEqual(['/instances/demo/replication', '/hosts/here'])
  expect(placesOfKind('no-primary')).toEqual(['/instances/demo/replication/takeover', '/hosts/here'])
  expect(placesOfKind('instance-crashed')).toEqual(['/instances/demo', '/hosts/here'])
  expect(placesOfKind('of-an-earlier-version')).toEqual(['/instances/demo', '/hosts/here'])
})

test('a button leads to what is to be done, as long as there is something to do', () => {
  const action = (kind: IncidentKind, closedAt: number | null = null) =>
    actionOf({ key: `${kind}:1`, instanceName: 'demo', closedAt })
  expect(action('no-primary')).toEqual({ label: 'Fail over', href: '/instances/demo/replication/takeover' })
  const rejoin = { label: 'Rejoin', href: '/instances/demo/replication?rejoin=demo' }
  expect(action('standby-not-streaming')).toEqual(rejoin)
  expect(action('diverged')).toEqual(rejoin)
  expect(action('instance-missing')).toEqual({ label: 'Adopt', href: '/instances/demo' })
  expect(action('diverged', 1)).toBeNull()
  expect(action('host-clock')).toBeNull()
})
