import { apartOf, type ClusterObserved, lsnDistance, memberOfSource, type Protection } from '@floe/domain'
import type { ProtectionView } from './protection.types'

/** The member behind `host:port/database`; null where none has that address (any more). */
export const nameOfSource = (cluster: ClusterObserved | undefined, source: string): string | null =>
  (cluster && memberOfSource(cluster, source)?.name) ?? null

/** What protects an instance, with the names of its sources and how far behind each is, by what is stored. */
export function protectionView(
  cluster: ClusterObserved | undefined,
  instanceId: string,
  protection: Protection | null,
): ProtectionView | null {
  if (!protection) return null
  const own = cluster?.members.find((m) => m.instanceId === instanceId)
  return {
    ...protection,
    sources: protection.sources.map((source) => {
      const member = cluster && memberOfSource(cluster, source.source)
      const behind = lsnDistance(source.flushLsn, own?.replication?.endLsn)
      return {
        ...source,
        member: member?.name ?? null,
        apart: apartOf(own, source, member),
        lagBytes: own?.role === 'primary' && behind !== null ? Math.max(0, behind) : null,
      }
    }),
  }
}
