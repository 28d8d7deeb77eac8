import { z } from 'zod'
import type { ClusterMember, ClusterObserved } from './cluster'
import { ClusterId, primaryOf, standbySeenOf } from './cluster'
import type { Fault } from './fault'
import { InstanceId } from './ids'
import { fencedWords } from './member-role'
import { type CheckedSetting, SettingChange } from './setting'
import { isStandbySensitive } from './standby-sensitive'

/** Whose settings are meant: those of one instance, or of all members of a cluster. */
export const SettingScope = z.union([
  z.strictObject({ instanceId: InstanceId }),
  z.strictObject({ clusterId: ClusterId }),
])
export type SettingScope = z.infer<typeof SettingScope>

/** Two members of a cluster that are on one host, so that what there is once on a host cannot be both's; null where none are. */
export function membersOfOneHost<M extends Pick<ClusterMember, 'hostId'>>(
  members: readonly M[],
): readonly [M, M] | null {
  for (const [i, one] of members.entries()) {
    const other = members.slice(i + 1).find((m) => m.hostId === one.hostId)
    if (other) return [one, other]
  }
  return null
}

type Hosts = readonly Pick<ClusterMember, 'hostId'>[]
/** Of a value that is not known yet, undefined is asked for. */
type OwnSetting = { why: string; unless?: (members: Hosts, value: string | null | undefined) => boolean }

/** Settings that are each member's own: what is right for one is wrong for another. */
const settingsOfOneMember: Readonly<Record<string, OwnSetting>> = {
  listen_addresses: { why: 'Every member listens on addresses of its own host.' },
  polar_page_repair_sources: {
    why: 'Floe writes it: it lists a primary’s standbys, or a standby’s primary.',
  },
  polar_ss_port: {
    why: 'Members that share a host cannot share a port.',
    // 0 and the default close it
    unless: (members, value) => !membersOfOneHost(members) || value === null || value?.trim() === '0',
  },
  synchronous_commit: {
    why: 'It is the cluster’s commit mode: set it on the replication page or with "./floe cluster synchronous".',
  },
}

/** Why members do not get one value of a setting; null where they may. Of a cluster of one, the member's own are the cluster's. */
export function whyOfOneMember(name: string, members: Hosts, value?: string | null): string | null {
  const own = members.length > 1 ? settingsOfOneMember[name.toLowerCase()] : undefined
  return own && !own.unless?.(members, value) ? own.why : null
}

/**
 * Who takes a change first. A smaller value of a sensitive setting goes to the primary first, and to a standby once it
 * replayed that. Everything else goes to the standbys first: a greater value because they must not be smaller, the rest
 * because what an engine does not start with is then found out where no client writes.
 */
export function settingOrder(
  name: string,
  oldValue: number | null,
  newValue: number | null,
): 'primary-first' | 'standbys-first' {
  return isStandbySensitive(name) && oldValue !== null && newValue !== null && newValue < oldValue
    ? 'primary-first'
    : 'standbys-first'
}

/** What is asked of a member. */
export const MemberSettings = z.object({
  instanceId: InstanceId,
  changes: z.array(SettingChange).min(1).max(100),
})
export type MemberSettings = z.infer<typeof MemberSettings>

/** What of a member's check decides who takes a change when. */
type CheckedOfMember = Pick<CheckedSetting, 'name' | 'impact' | 'oldNumber' | 'newNumber'>

/** A member as a change across its cluster is planned. */
export type MemberCheck = {
  instanceId: string
  name: string
  primary: boolean
  changes: readonly SettingChange[]
  checked: readonly CheckedOfMember[]
}

/**
 * The parts of a change across a cluster, in this order: `standbys` first, the `primary`, and again standbys, where they
 * `replayed` what the primary wrote about itself.
 */
export type SettingPhaseName = 'standbys' | 'primary' | 'replayed'

export type MemberTurn = {
  instanceId: string
  name: string
  changes: SettingChange[]
  /** Whether any of them needs a restart to be in force. */
  restart: boolean
  /** What its primary's WAL may ask of it at most before these values are written. */
  atMost: Record<string, number>
}
export type SettingPhase = { phase: SettingPhaseName; members: MemberTurn[] }

/**
 * The order of a change across a cluster. It keeps true at every moment, wherever it is interrupted, that no standby has a
 * sensitive setting smaller than what its primary's WAL asks for. Pure; empty phases are left out.
 */
export function planSettingPhases(members: readonly MemberCheck[]): SettingPhase[] {
  const turns: Record<SettingPhaseName, MemberTurn[]> = { standbys: [], primary: [], replayed: [] }
  for (const member of members) {
    const parts: Record<SettingPhaseName, SettingChange[]> = { standbys: [], primary: [], replayed: [] }
    for (const change of member.changes) {
      const seen = checkOf(member, change.name)
      const order = settingOrder(change.name, seen?.oldNumber ?? null, seen?.newNumber ?? null)
      parts[member.primary ? 'primary' : order === 'primary-first' ? 'replayed' : 'standbys'].push(change)
    }
    for (const phase of ['standbys', 'primary', 'replayed'] as const)
      if (parts[phase].length > 0) turns[phase].push(turnOf(member, phase, parts[phase]))
  }
  return (['standbys', 'primary', 'replayed'] as const)
    .map((phase) => ({ phase, members: turns[phase] }))
    .filter((p) => p.members.length > 0)
}

const checkOf = (member: Pick<MemberCheck, 'checked'>, name: string) =>
  member.checked.find((c) => c.name.toLowerCase() === name.toLowerCase())

function turnOf(member: MemberCheck, phase: SettingPhaseName, changes: SettingChange[]): MemberTurn {
  const atMost =
    phase === 'replayed' ? changes.map((c) => [c.name.toLowerCase(), checkOf(member, c.name)?.newNumber]) : []
  return {
    instanceId: member.instanceId,
    name: member.name,
    changes,
    restart: changes.some((c) => checkOf(member, c.name)?.impact === 'restart'),
    atMost: Object.fromEntries(atMost) as Record<string, number>,
  }
}

/** The way back: the same members from what was asked to what held before. `before` is a member's managed file. */
export function reverseChecks(
  members: readonly (MemberCheck & { before: Readonly<Record<string, string>> })[],
): MemberCheck[] {
  return members.map((m) => ({
    ...m,
    changes: m.changes.map((c) => ({ name: c.name, value: m.before[c.name.toLowerCase()] ?? null })),
    checked: m.checked.map((c) => ({ ...c, oldNumber: c.newNumber, newNumber: c.oldNumber })),
  }))
}

/** What may pass without an operation in a moment: the operation waits for it. */
export const passingBlockers: readonly string[] = ['member.not_streaming', 'member.host_stale']

/** Why a change across a cluster cannot be begun as things were last seen; empty when it can. */
export function clusterSettingBlockers(
  cluster: ClusterObserved,
  members: readonly MemberSettings[],
): Fault[] {
  const faults: Fault[] = []
  for (const { instanceId, changes } of members) {
    if (!cluster.members.some((m) => m.instanceId === instanceId))
      faults.push({
        code: 'cluster.no_member',
        message: `cluster "${cluster.name}" has no such member`,
        detail: `Instance ${instanceId} is not in it.`,
      })
    for (const { name, value } of changes) {
      const reason = whyOfOneMember(name, cluster.members, value)
      if (reason && !faults.some((f) => f.message.includes(`"${name}"`)))
        faults.push({
          code: 'setting.of_one_member',
          message: `setting "${name}" is not changed for a whole cluster`,
          detail: reason,
          hint: 'Change it on each member.',
        })
    }
  }
  const sensitive = members.some((m) => m.changes.some((c) => isStandbySensitive(c.name)))
  for (const m of cluster.members) {
    const about = (code: string, message: string, detail: string | null, hint: string) =>
      faults.push({ code, message, detail, hint })
    if (!members.some((x) => x.instanceId === m.instanceId))
      about(
        'cluster.member_left_out',
        `member "${m.name}" is left out`,
        'A change of a cluster’s settings names every member.',
        'Try again: the member has joined the cluster meanwhile.',
      )
    else if (m.hostState === 'stale' && m.state !== 'unknown')
      about(
        'member.host_stale',
        `host "${m.hostName}" of member "${m.name}" has not answered for some seconds`,
        'The member’s own engine has to check the values.',
        'Wait until the host answers.',
      )
    else if (m.hostState !== 'online' || m.state === 'unknown')
      about(
        'member.host_silent',
        `host "${m.hostName}" of member "${m.name}" does not answer`,
        'The member’s own engine cannot check the values, and its settings would differ from those of the other members.',
        'Bring the host back, or remove that member from the cluster.',
      )
    else if (m.memberRole === 'fenced' || m.fenced)
      about('member.fenced', `member "${m.name}" is ${fencedWords(m)}`, null, 'Rejoin or remove it first.')
    else if (m.state !== 'running')
      about(
        'member.not_running',
        `member "${m.name}" is ${m.state}`,
        m.because,
        'Start it, or remove it from the cluster: every member has to confirm the values.',
      )
    else if (sensitive && m.memberRole === 'standby') {
      if (standbySeenOf(primaryOf(cluster), m)?.state !== 'streaming')
        about(
          'member.not_streaming',
          `member "${m.name}" does not stream from the primary`,
          'A standby can only take such a change while it replays what the primary writes.',
          'Wait until it has caught up, or rejoin it.',
        )
      else if (m.replication?.replayPaused)
        about(
          'member.replay_paused',
          `replay is paused on member "${m.name}"`,
          'A standby can only take such a change while it replays what the primary writes.',
          'Run "select pg_wal_replay_resume()" there.',
        )
    }
  }
  return faults
}

/** What is wrong with a change across a cluster by what its members' engines said; empty when nothing is. */
export function clusterSettingFaults(members: readonly MemberCheck[], restart: boolean): Fault[] {
  const primary = members.find((m) => m.primary)
  const standbys = members.filter((m) => !m.primary)
  const faults: Fault[] = []
  const names = new Set(members.flatMap((m) => m.changes.map((c) => c.name.toLowerCase())))
  for (const name of names) {
    if (!isStandbySensitive(name)) continue
    const wanted = primary && checkOf(primary, name)?.newNumber
    for (const s of standbys) {
      const own = checkOf(s, name)?.newNumber
      if (typeof wanted === 'number' && typeof own === 'number' && own < wanted)
        faults.push({
          code: 'setting.below_primary',
          message: `"${name}" of standby "${s.name}" would be smaller than the primary’s`,
          detail: `It would be ${own}, the primary’s ${wanted}. Such a standby stops replaying and does not start.`,
        })
    }
    if (name === 'max_wal_senders' && typeof wanted === 'number' && wanted < standbys.length)
      faults.push({
        code: 'setting.too_few_senders',
        message: `${standbys.length} standbys need as many WAL senders`,
        detail: `With max_wal_senders = ${wanted}, not all of them can follow the primary.`,
        hint: `Set it to at least ${standbys.length + 1}, which leaves one for a new copy.`,
      })
    const moves = members.some((m) => checkOf(m, name)?.oldNumber !== checkOf(m, name)?.newNumber)
    if (!restart && moves && standbys.length > 0)
      faults.push({
        code: 'setting.order_needs_restart',
        message: `setting "${name}" cannot wait for a restart in a cluster`,
        detail: 'Members have to be restarted in the right order, or a standby stops replaying.',
        hint: 'Allow the change to restart the members.',
      })
  }
  return faults
}

/** Why a change on one member alone is refused; null where it is none of the cluster’s business. */
export function ofWholeCluster(
  names: readonly string[],
  cluster: { name: string; members: number },
): Fault | null {
  const name = cluster.members > 1 ? names.find(isStandbySensitive) : undefined
  return name === undefined
    ? null
    : {
        code: 'setting.of_cluster',
        message: `setting "${name.toLowerCase()}" is changed for the whole cluster`,
        detail: `A standby with a smaller value than its primary stops replaying and does not start; cluster "${cluster.name}" has ${cluster.members} members.`,
        hint: `Use the cluster’s settings, or "./floe setting set --cluster ${cluster.name} ${name.toLowerCase()}=…".`,
      }
}

/** What the values of a setting mean across members: whether they differ, and whether a standby’s is too small. */
export function compareMembers(
  values: readonly { primary: boolean; value: string | null; name: string }[],
  setting: string,
): { differs: boolean; tooSmallOn: string[] } {
  const own = values.find((v) => v.primary)?.value ?? null
  const tooSmall = (v: (typeof values)[number]) =>
    isStandbySensitive(setting) &&
    !v.primary &&
    v.value !== null &&
    own !== null &&
    Number(v.value) < Number(own)
  return {
    differs: new Set(values.map((v) => v.value)).size > 1,
    tooSmallOn: values.filter(tooSmall).map((v) => v.name),
  }
}
