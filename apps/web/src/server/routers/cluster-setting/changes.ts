import { listClusterSettingStates, type Queryable } from '@floe/db'
import {
  type ClusterObserved,
  fault,
  type MemberSettings,
  type SettingChange,
  settingsOfOneMember,
} from '@floe/domain'
import { changesTo } from '../setting/states'

type StateRow = Awaited<ReturnType<typeof listClusterSettingStates>>[number]

/** The same changes for every member. */
export const forAll = (cluster: ClusterObserved, changes: SettingChange[]): MemberSettings[] =>
  cluster.members.map((m) => ({ instanceId: m.instanceId, changes }))

/** Of each member, the state that held when this one was written; by instance, undefined where none is known. */
function statesAsOf(rows: readonly StateRow[], members: readonly string[], stateId: string) {
  return new Map(
    members.map((id) => {
      const own = rows.filter((r) => r.instanceId === id)
      const oldest = own.at(-1)
      // what was found at a later change had held before it, too
      const found = oldest?.operationId === null ? oldest : undefined
      return [id, own.find((r) => BigInt(r.id) <= BigInt(stateId)) ?? found]
    }),
  )
}

/**
 * What going back to a state changes, member by member. A member that joined later goes the way of its primary. Settings
 * that are each member's own stay as they are.
 */
export function changesBack(
  rows: readonly StateRow[],
  cluster: Pick<ClusterObserved, 'members' | 'primaryInstanceId'>,
  stateId: string,
): (MemberSettings & { name: string })[] {
  const ids = cluster.members.map((m) => m.instanceId)
  const wanted = statesAsOf(rows, ids, stateId)
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
    // a member without a state of its own was copied from the primary
    const holding = holdingOf(instanceId) ?? holdingOf(primaryId) ?? {}
    return {
      instanceId,
      changes: names.map(
        (name) => changes.find((c) => c.name === name) ?? { name, value: holding[name] ?? null },
      ),
    }
  })
}

/** What is asked of every member to go back to a state. Throws `setting.state_not_found` or `setting.state_holds`. */
export async function wayBack(
  on: Queryable,
  cluster: ClusterObserved,
  stateId: string,
): Promise<{ at: Date; members: MemberSettings[] }> {
  const rows = await listClusterSettingStates(on, { clusterId: cluster.clusterId })
  const state = rows.find((r) => r.id === stateId)
  if (!state)
    throw fault('setting.state_not_found', `the cluster has no state ${stateId} of its settings`, {
      hint: 'List them with clusterSetting.states.',
    })
  const members = changesBack(rows, cluster, stateId)
  if (members.every((m) => m.changes.length === 0))
    throw fault('setting.state_holds', 'the settings are as they were in that state', {
      detail: 'Going back to it would change nothing.',
    })
  return { at: state.at, members: completed(rows, members, cluster.primaryInstanceId) }
}
