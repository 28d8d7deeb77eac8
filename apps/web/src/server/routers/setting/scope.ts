import { type InstanceView, type Queryable, showInstance } from '@floe/db'
import {
  type ClusterObserved,
  fault,
  type HostId,
  InstanceId,
  type MemberSettings,
  type SettingChange,
  type SettingScope,
} from '@floe/domain'
import { requireCluster } from '../cluster/find'
import type { SettingMember } from './setting.types'

export type MemberInScope = SettingMember & { hostId: HostId }

/** What a scope names. */
export type Scope = {
  /** The primary first; one where an instance is meant. */
  members: MemberInScope[]
  /** Whose changes a member goes by that has no revision of its own. */
  leaderId: InstanceId
  /** One of the two: who is meant. */
  instance: InstanceView | null
  cluster: ClusterObserved | null
}

/** Reads whom a scope names. Throws `instance.not_found` or `cluster.not_found`. */
export async function readScope(on: Queryable, scope: SettingScope): Promise<Scope> {
  if ('clusterId' in scope) {
    const cluster = await requireCluster(on, scope)
    const { members, primaryInstanceId: leaderId } = cluster
    return { members, leaderId, instance: null, cluster }
  }
  const instance = await showInstance(on, scope.instanceId)
  if (!instance) throw fault('instance.not_found', `instance "${scope.instanceId}" does not exist`)
  const instanceId = InstanceId.parse(instance.instanceId)
  const { name, host, cluster } = instance
  const member = { instanceId, name, memberRole: cluster.memberRole, hostId: host.hostId as HostId }
  return { members: [member], leaderId: instanceId, instance, cluster: null }
}

/** A member as every answer names it. */
export const memberOf = ({ instanceId, name, memberRole }: SettingMember): SettingMember => ({
  instanceId,
  name,
  memberRole,
})

/** The same changes for every member. */
export const forAll = ({ members }: Pick<Scope, 'members'>, changes: SettingChange[]): MemberSettings[] =>
  members.map((m) => ({ instanceId: m.instanceId, changes }))
