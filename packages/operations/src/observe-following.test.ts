import type { ClusterMember, ClusterObserved } from '@floe/domain'
import { expect, test } from 'vitest'
import { observeFollowing } from './observe-following'
import type { StepContext } from './step'

/** One pass over the step: of a standby that its primary sees streaming, as it was last reported. */
async function pass(standby: Partial<ClusterMember>) {
  const primary = {
    instanceId: '1',
    name: 'one',
    state: 'running',
    role: 'primary',
    replication: { standbys: [{ applicationName: 'one-2', state: 'streaming' }] },
  }
  const step = observeFollowing<'rejoin-standby'>(() => ['2'])
  const outcome = await step.run({
    readCluster: async () =>
      ({
        primaryInstanceId: '1',
        members: [primary, { instanceId: '2', name: 'one-2', role: 'standby', fenced: null, ...standby }],
      }) as unknown as ClusterObserved,
    now: new Date(1_000),
    step: { name: 'observe', attempt: 1, startedAt: new Date(0), taskLogSeq: 0 },
  } as unknown as StepContext<'rejoin-standby'>)
  return outcome.word
}

test('a standby is waited for until it is reported streaming, as a standby, and no longer fenced', async () => {
  expect(await pass({})).toBe('next')
  expect(await pass({ name: 'one-3' })).toBe('wait')
  expect(await pass({ role: 'primary' })).toBe('wait')
  expect(await pass({ fenced: { at: 0, reason: 'it is being rejoined' } })).toBe('wait')
})
