import type { ClusterObserved, Protection } from '@floe/domain'
import { expect, test } from 'vitest'
import { protectionView } from './protection.views'

const cluster = {
  members: [
    {
      instanceId: 'p',
      hostId: 'a',
      powerSupply: 'x',
      name: 'one',
      role: 'primary',
      connection: null,
      replication: { endLsn: '0/3000100' },
    },
    {
      instanceId: 's',
      hostId: 'b',
      powerSupply: 'x',
      name: 'one-2',
      role: 'standby',
      connection: { host: 'h', port: 5501 },
    },
  ],
} as never as ClusterObserved
const seen = (flushLsn: string | null) =>
  ({
    state: 'protected',
    sources: [
      { source: 'h:5501/postgres', healthy: true, why: null, flushLsn, replayLsn: null, checkedAt: null },
    ],
  }) as never as Protection

test('a source has its member’s name and its lag to the byte; unknown stays unknown', () => {
  expect(protectionView(cluster, 'p', seen('0/3000000'))?.sources[0]).toMatchObject({
    member: 'one-2',
    apart: 'same-supply',
    lagBytes: 256,
  })
  // its position is newer than what is stored of the primary
  expect(protectionView(cluster, 'p', seen('0/4000000'))?.sources[0]?.lagBytes).toBe(0)
  expect(protectionView(cluster, 'p', seen(null))?.sources[0]?.lagBytes).toBeNull()
  expect(protectionView(undefined, 'p', seen('0/3000000'))?.sources[0]).toMatchObject({
    member: null,
    apart: null,
    lagBytes: null,
  })
  expect(protectionView(cluster, 'p', null)).toBeNull()
})
