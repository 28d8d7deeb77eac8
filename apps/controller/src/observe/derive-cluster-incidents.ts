import {
  type ClusterMember,
  type ClusterObserved,
  type IncidentKindOpenedBy,
  type IncidentReport,
  incident,
  isConnected,
  judgeCandidates,
  lossDoubts,
  partedAt,
  primaryOf,
  runningPrimary,
  standbySeenOf,
  unsettledMembers,
} from '@floe/domain'

/** Of a kind that the watch over clusters opens, and therefore closes. */
type ClusterIncident = IncidentReport<IncidentKindOpenedBy<'cluster watch'>>

/**
 * Every incident that ought to be open for a cluster with standbys, and no other. Pure. A record that is in doubt says
 * nothing of who is what: then only that nobody at all is seen as a primary.
 */
export function deriveClusterIncidents(
  cluster: ClusterObserved,
  { inDoubt = false, unheardMs = UNHEARD_MS }: { inDoubt?: boolean; unheardMs?: number | undefined } = {},
): ClusterIncident[] {
  if (cluster.members.length < 2) return []
  if (inDoubt) return noPrimaryInDoubt(cluster)
  const primary = runningPrimary(cluster)
  return [
    ...(primary ? [] : noPrimary(cluster, unheardMs)),
    ...cluster.members.flatMap((m) => notFollowing(cluster, primary, m)),
  ]
}

const silent = (m: ClusterMember) => m.hostState !== 'online' || m.state === 'unknown'

/**
 * After so long without a message a standby hears nobody, whatever its receiver calls itself until wal_receiver_timeout (60 s
 * unless it is set). An idle primary sends nothing until the standby asks it, after half of that, and then answers at once.
 * Where the timeout is set higher, silence proves nothing by then; so the words claim nothing but that nobody hears it.
 */
const UNHEARD_MS = 32_000

/** A primary that is not seen lives as long as a standby hears it. */
const hears = (standby: ClusterMember, primary: ClusterMember, unheardMs: number) => {
  const receiver = standby.replication?.receiver
  if (silent(standby) || standby.memberRole !== 'standby' || receiver?.status !== 'streaming') return false
  const silentMs = receiver.silentMs ?? Number.POSITIVE_INFINITY
  return (
    receiver.senderHost === primary.connection?.host &&
    receiver.senderPort === primary.connection?.port &&
    // its clock was set back: when it last heard is not known
    silentMs >= 0 &&
    silentMs + (standby.ageMs ?? 0) <= unheardMs
  )
}

/** Its host does not answer, or its engine does not answer its agent: it may serve clients all the same. */
const unseen = (primary: ClusterMember) =>
  silent(primary) || (primary.state === 'running' && primary.role === null)

function noPrimary(cluster: ClusterObserved, unheardMs: number): ClusterIncident[] {
  const primary = primaryOf(cluster)
  if (!primary) return []
  // when nobody at all is heard, it is the hosts or the console that are away, and that is reported of them
  if (cluster.members.every(silent)) return []
  if (unseen(primary) && cluster.members.some((m) => hears(m, primary, unheardMs))) return []
  // a person stopped it, and nobody has taken over
  const unsettled = unsettledMembers(cluster)
  if (
    primary.intent === 'stopped' &&
    primary.state === 'stopped' &&
    !primary.fenced &&
    unsettled.length === 0
  )
    return []
  const { name } = cluster
  const maybe = unsettled.map(
    ({ name: of, hostName }) =>
      `"${of}" on host "${hostName}" may have been promoted: its promotion was started, and its outcome is unknown.`,
  )
  return [
    incident('no-primary', [cluster.clusterId], {
      title: unseen(primary)
        ? `cluster "${name}" has no primary that answers`
        : `cluster "${name}" has no primary: clients cannot write`,
      detail: [whyNone(primary), ...maybe].join(' '),
      hint: whatToDo(cluster, primary),
      instanceId: primary.instanceId,
    }),
  ]
}

function noPrimaryInDoubt(cluster: ClusterObserved): ClusterIncident[] {
  const { members, name } = cluster
  if (members.some((m) => !silent(m) && m.state === 'running' && m.role === 'primary' && !m.fenced)) return []
  if (members.every(silent)) return []
  const primary = primaryOf(cluster)
  if (primary?.intent === 'stopped' && primary.state === 'stopped' && !primary.fenced) return []
  const unseen = members.filter(silent).map((m) => `"${m.name}"`)
  return [
    incident('no-primary', [cluster.clusterId], {
      title: `no running primary of cluster "${name}" is known`,
      detail: [
        'No member is reported to run as a primary. Which member should be the primary is in doubt: the record may be older than the cluster.',
        ...(unseen.length > 0 ? [`Unreachable: ${unseen.join(', ')}.`] : []),
      ].join(' '),
      hint: 'Check its members, then decide with "./floe console accept-restored".',
      instanceId: cluster.primaryInstanceId,
    }),
  ]
}

const mayWrite = 'Whether it still accepts writes is unknown.'

function whyNone(primary: ClusterMember): string {
  const { name, hostName, state, fenced, role } = primary
  if (silent(primary))
    return `Host "${hostName}" of its primary "${name}" does not answer, and no standby receives anything from it. ${mayWrite}`
  if (fenced) return `Its primary "${name}" is ${state} and fenced: ${fenced.reason}.`
  if (state === 'running' && role === 'standby') return `Its primary "${name}" runs as a standby.`
  if (state === 'running' && role === null)
    return `Its primary "${name}" runs and does not answer its agent, and no standby receives anything from it. ${mayWrite}`
  return `Its primary "${name}" is ${state}.`
}

/** The verb that leads out; who takes over is judged again by the operation. */
function whatToDo(cluster: ClusterObserved, primary: ClusterMember): string {
  // where a loss cannot be excluded that is said on the page, and by the verb
  const ready = judgeCandidates(cluster, 'failover').find((c) =>
    c.blockers.every((b) => lossDoubts.includes(b.code)),
  )
  const promoted = unsettledMembers(cluster).find((m) => !silent(m) && m.role === 'primary')
  const to = promoted?.name ?? ready?.name
  const over = to
    ? `fail over: "./floe cluster failover ${cluster.name} --to ${to}"`
    : 'bring a standby’s host back'
  const mayStart = !silent(primary) && !primary.fenced && primary.state !== 'running'
  if (promoted) return `"${promoted.name}" was promoted. To record it as the primary, ${over}.`
  if (mayStart) return `Start it: "./floe instance start ${primary.name}", or ${over}.`
  if (silent(primary)) return `Bring that host back, or ${over}.`
  return `${over[0]?.toUpperCase()}${over.slice(1)}.`
}

/** A standby that runs and follows nobody; without a primary there is nobody to follow. */
function notFollowing(
  cluster: ClusterObserved,
  primary: ClusterMember | undefined,
  member: ClusterMember,
): ClusterIncident[] {
  if (member.memberRole !== 'standby' || member.fenced || silent(member)) return []
  if (member.state !== 'running' || member.role !== 'standby') return []
  const { name, instanceId } = member
  const parted = partedAt(cluster, member)
  const rejoin = `Rejoin it: "./floe standby rejoin ${name}"`
  if (parted !== null)
    return [
      incident('diverged', [instanceId], {
        title: `standby "${name}" has diverged from cluster "${cluster.name}"`,
        detail: `It diverged at ${parted} and has later WAL that the primary never had. It follows no upstream and cannot take over.`,
        hint: `${rejoin}. The rejoin removes what only this member holds.`,
        instanceId,
      }),
    ]
  if (!primary || isConnected(standbySeenOf(primary, member))) return []
  return [
    incident('standby-not-streaming', [instanceId], {
      title: `standby "${name}" does not stream from "${primary.name}"`,
      detail: whyNot(cluster, primary, member),
      hint: `Check that its host reaches the primary's host. ${rejoin} if its log reports removed WAL or a different timeline history.`,
      instanceId,
    }),
  ]
}

function whyNot(cluster: ClusterObserved, primary: ClusterMember, member: ClusterMember): string {
  const seen = standbySeenOf(primary, member)?.state
  const said = member.whyNotStreaming
  return [
    seen ? `Its state at the primary is "${seen}".` : 'It is not connected to the primary.',
    said ? `Its log: ${said}` : 'Its log gives no reason.',
    ...(cluster.synchronous?.instanceIds.includes(member.instanceId)
      ? ['It is one of the synchronous standbys.']
      : []),
  ].join(' ')
}
