import { fault, InstanceName } from '@floe/domain'
import type { RouterOutputs } from '@floe/web/api'
import { type ConsoleClient, consoleFault } from '../console/client'

export type ClusterDetail = RouterOutputs['cluster']['show']
export type Member = ClusterDetail['cluster']['members'][number]

/** A cluster by its name, or by the name of one of its members. */
export async function findCluster({ trpc }: ConsoleClient, name: string): Promise<ClusterDetail> {
  const parsed = InstanceName.safeParse(name)
  if (!parsed.success)
    throw fault('usage.cluster_name', `"${name}" is not the name of a cluster`, {
      detail: `A name ${parsed.error.issues[0]?.message}.`,
    })
  try {
    return await trpc.cluster.show.query({ name: parsed.data })
  } catch (error) {
    throw consoleFault(error)
  }
}

/** A member by its name; throws a mistake in how the command was called. */
export function memberNamed(detail: ClusterDetail, name: string): Member {
  const member = detail.cluster.members.find((m) => m.name === name)
  if (!member)
    throw fault('usage.no_member', `cluster "${detail.cluster.name}" has no member "${name}"`, {
      hint: `Its members are ${detail.cluster.members.map((m) => m.name).join(', ')}.`,
    })
  return member
}

/** The host of this name; throws a mistake in how the command was called. */
export async function hostNamed({ trpc }: ConsoleClient, name: string) {
  const { hosts } = await trpc.host.list.query()
  const host = hosts.find((h) => h.name === name)
  if (!host)
    throw fault('usage.no_host', `host "${name}" does not exist`, {
      hint: `The hosts are ${hosts.map((h) => h.name).join(', ')}.`,
    })
  return host.hostId
}
