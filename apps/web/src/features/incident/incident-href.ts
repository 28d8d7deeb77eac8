import type { RouterOutputs } from '@/server/api'

export type Incident = RouterOutputs['incident']['list']['incidents'][number]

/** Where an incident is dealt with; null where there is no page for it. */
export function incidentHref(
  incident: Pick<Incident, 'key' | 'operationId' | 'instanceId' | 'hostId'>,
): string | null {
  if (incident.operationId) return `/operations/${incident.operationId}`
  const page = incident.key.startsWith('setting-drift:') ? '/settings' : ''
  if (incident.instanceId) return `/instances/${incident.instanceId}${page}`
  return incident.hostId ? '/hosts' : null
}
