import { incidentKindOf } from '@floe/domain'
import Link from 'next/link'
import type { Incident } from '@/server/api'
import { REJOIN } from '../console/page-addresses'

/** What an incident is about, each with its address; what does not exist any more has none and is left out. */
export function placesOf(incident: Incident): { what: string; name: string; href: string }[] {
  const { key, operationId, operationTitle, instanceName, hostName } = incident
  const page = incidentKindOf(key)?.page.split('/').slice(1).join('/')
  return [
    ...(operationId && operationTitle
      ? [{ what: 'operation', name: operationTitle, href: `/operations/${operationId}` }]
      : []),
    ...(instanceName
      ? [
          {
            what: 'instance',
            name: instanceName,
            href: `/instances/${instanceName}${page ? `/${page}` : ''}`,
          },
        ]
      : []),
    ...(hostName ? [{ what: 'host', name: hostName, href: `/hosts/${hostName}` }] : []),
  ]
}

/** What there is to do about an open incident, with the address where it is done; null where a person has to look first. */
export function actionOf({
  key,
  closedAt,
  instanceName,
}: Pick<Incident, 'key' | 'closedAt' | 'instanceName'>): { label: string; href: string } | null {
  const kind = incidentKindOf(key)
  const action = kind?.action
  // what is asked beside the incident itself leads nowhere
  if (!action || action.dialog === 'accept-restored' || closedAt !== null || !instanceName) return null
  const page = ['/instances', instanceName, ...kind.page.split('/').slice(1)].join('/')
  return {
    label: action.label,
    href: action.dialog === 'rejoin' ? `${page}?${REJOIN}=${instanceName}` : page,
  }
}

/** `operation Restart instance · instance demo · host here`, each a link. */
export function IncidentPlaces({ incident }: { incident: Incident }) {
  const places = placesOf(incident)
  if (places.length === 0) return null
  return (
    <span className="flex flex-wrap gap-x-3 gap-y-0.5">
      {places.map(({ what, name, href }) => (
        <span key={what}>
          {what}{' '}
          <Link href={href} className="font-medium text-accent underline-offset-2 hover:underline">
            {name}
          </Link>
        </span>
      ))}
    </span>
  )
}
