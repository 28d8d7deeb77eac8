import { z } from 'zod'
import type { ClusterMember, ClusterObserved } from './cluster'
import { InstanceId } from './ids'

/**
 * Which members of a cluster give the others pages that a crash tore. Standbys that are not excluded are sources of their
 * primary; a standby's sources are its primary and the other such standbys.
 */
export const PageRepair = z.object({
  enabled: z.boolean(),
  /** Standbys that give no pages, e.g. because they lag on purpose. */
  excluded: z.array(InstanceId),
})
export type PageRepair = z.infer<typeof PageRepair>

/** A cluster in which nobody chose otherwise: every standby is a source as soon as it follows. */
export const automaticPageRepair: PageRepair = { enabled: true, excluded: [] }

/** The engine takes no longer list. */
export const REPAIR_SOURCES_MAX = 8

type Sources = Pick<ClusterObserved, 'members' | 'primaryInstanceId' | 'pageRepair'>

/**
 * The members whose pages this one may take, in the order they are asked: the primary first, then standbys by name. A
 * fenced member is none, because its history may have parted; `without` is one that is about to leave.
 */
export function repairSourcesOf(
  cluster: Sources,
  instanceId: string,
  without: string | null = null,
): ClusterMember[] {
  const { enabled, excluded } = cluster.pageRepair ?? automaticPageRepair
  if (!enabled || instanceId === without) return []
  const isPrimary = (m: ClusterMember) => m.instanceId === cluster.primaryInstanceId
  return cluster.members
    .filter((m) => m.instanceId !== instanceId && m.instanceId !== without && m.memberRole !== 'fenced')
    .filter((m) => isPrimary(m) || !excluded.includes(m.instanceId))
    .sort((a, b) => Number(isPrimary(b)) - Number(isPrimary(a)) || (a.name < b.name ? -1 : 1))
    .slice(0, REPAIR_SOURCES_MAX)
}

/** The member that an engine's view names as `host:port/database`. */
export function memberOfSource(cluster: Pick<ClusterObserved, 'members'>, source: string) {
  return cluster.members.find(({ connection: c }) => c !== null && source === `${c.host}:${c.port}/postgres`)
}
