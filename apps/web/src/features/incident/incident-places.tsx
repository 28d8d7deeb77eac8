import Link from 'next/link'
import type { Incident } from '@/server/api'

/** What an incident is about, each with its address; what does not exist any more has none and is left out. */
export function placesOf(incident: Incident): { what: string; name: string; href: string }[] {
  const { key, operationId, operationTitle, instanceName, hostName } = incident
  const page = key.startsWith('setting-drift:') ? '/settings' : ''
  return [
    ...(operationId && operationTitle
      ? [{ what: 'operation', name: operationTitle, href: `/operations/${operationId}` }]
      : []),
    ...(instanceName
      ? [{ what: 'instance', name: instanceName, href: `/instances/${instanceName}${page}` }]
      : []),
    ...(hostName ? [{ what: 'host', name: hostName, href: `/hosts/${hostName}` }] : []),
  ]
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
