import type { ClusterMember } from '../cluster'
import type { InstanceId } from '../ids'

/** The id of the nth member. */
export const memberId = (n: number) => `00000000-0000-4000-8000-00000000000${n}` as InstanceId

/** The nth member as last reported, running and up to date; the first is the primary. Each is on a host of its own. */
export function observedMember(n: number, endLsn: string, more: Partial<ClusterMember> = {}): ClusterMember {
  return {
    instanceId: memberId(n),
    name: n === 1 ? 'one' : `one-${n}`,
    hostId: memberId(n) as never,
    hostName: `h${n}`,
    hostState: 'online',
    memberRole: n === 1 ? 'primary' : 'standby',
    state: 'running',
    because: null,
    role: n === 1 ? 'primary' : 'standby',
    ageMs: 500,
    engineVersion: '18.6',
    systemIdentifier: '1',
    timeline: 1,
    connection: null,
    fenced: null,
    replication: {
      at: 0,
      endLsn: endLsn as never,
      replayedLsn: endLsn as never,
      timeline: 1,
      replayPaused: false,
      replayDelayMs: 0,
      standbys: [],
      slots: [],
      receiver: null,
      synchronousStandbyNames: '',
      synchronousCommit: 'on',
      fullPageWrites: true,
      waitingCommits: 0,
    },
    ...more,
  }
}
