import { listClusterSettingRevisions, type Queryable } from '@floe/db'
import {
  type ClusterObserved,
  fault,
  type MemberSettings,
  type SettingChange,
  settingsOfOneMember,
} from '@floe/domain'
import { changesTo } from '../setting/revisions'

type StateRow = Awaited<ReturnType<typeof listClusterSettingRevisions>>[number]

/** The same changes for every member. */
export const forAll = (cluster: ClusterObserved, changes: SettingChange[]): MemberSettings[] =>
  cluster.members.map((m) => ({ instanceId: m.instanceId, changes }))

/** Of each member, the revision that held when this one was written; by instance, undefined where none is known. */
function statesAsOf(rows: readonly StateRow[], members: readonly string[], revisionId: string) {
  return new Map(
    members.map((id) => {
      const own = rows.filter((r) => r.instanceId === id)
      const oldest = own.at(-1)
      // what was found at a later change had held before it, too
      const found = oldest?.operationId === null ? oldest : undefined
      return [id, own.find((r) => BigInt(r.id) <= BigInt(revisionId)) ?? found]
    }),
  )
}

/**
 * What going back to a revision changes, member by member. A member that joined later goes the way of its primary. Settings
 * that are each member's own stay as they are.
 */
export function changesBack(
  rows: readonly StateRow[],
  cluster: Pick<ClusterObserved, 'members' | 'primaryInstanceId'>,
  revisionId: string,
): (MemberSettings & { name: string })[] {
  const ids = cluster.members.map((m) => m.instanceId)
  const wanted = statesAsOf(rows, ids, revisionId)
  const holding = (id: string) => rows.find((r) => r.instanceId === id)?.managed ?? {}
  const wayOf = (id: string) => {
    const target = wanted.get(id)
    return target ? changesTo(holding(id), target.managed).filter((c) => !settingsOfOneMember[c.name]) : null
  }
  const ofPrimary = wayOf(cluster.primaryInstanceId) ?? []
  return cluster.members.map((m) => ({
    instanceId: m.instanceId,
    name: m.name,
    changes: wayOf(m.instanceId) ?? ofPrimary,
  }))
}

/** The same names on every member, also where one has that value already: the order is decided over all of them. */
function completed(
  rows: readonly StateRow[],
  members: (MemberSettings & { name: string })[],
  primaryId: string,
): MemberSettings[] {
  const names = [...new Set(members.flatMap((m) => m.changes.map((c) => c.name)))].sort()
  const holdingOf = (id: string) => rows.find((r) => r.instanceId === id)?.managed
  return members.map(({ instanceId, changes }) => {
    // a member without a revision of its own was copied from the primary
    const holding = holdingOf(instanceId) ?? holdingOf(primaryId) ?? {}
    return {
      instanceId,
      changes: names.map(
        (name) => changes.find((c) => c.name === name) ?? { name, value: holding[name] ?? null },
      ),
    }
  })
}

/** What is asked of every member to go back to a revision. Throws `setting.revision_not_found` or `setting.revision_current`. */
export async function wayBack(
  on: Queryable,
  cluster: ClusterObserved,
  revisionId: string,
): Promise<{ at: Date; members: MemberSettings[] }> {
  const rows = await listClusterSettingRevisions(on, { clusterId: cluster.clusterId })
  const revision = rows.find((r) => r.id === revisionId)
  if (!revision)
    throw fault('setting.revision_not_found', `the cluster has no revision ${revisionId} of its settings`, {
      hint: 'List them with clusterSetting.revisions.',
    })
  const members = changesBack(rows, cluster, revisionId)
  if (members.every((m) => m.changes.length === 0))
    throw fault('setting.revision_current', 'the settings are as they were in that revision', {
      detail: 'Going back to it would change nothing.',
    })
  return { at: revision.at, members: completed(rows, members, cluster.primaryInstanceId) }
}
