import { z } from 'zod'

/** What a process of the console may do at an agent: the web's certificate says `read`, the controller's `task`, which includes it. */
export const AgentRight = z.enum(['read', 'task'])
export type AgentRight = z.infer<typeof AgentRight>

/** How long certificates of hosts and of the console's processes are good: 14 days. */
export const CERTIFICATE_LIFETIME_MS = 14 * 86_400_000
/** A certificate is renewed once this share of its time is over; a host may then be away for the rest without harm. */
export const RENEW_AT_SHARE = 1 / 3
/** How long a token for enrolling a host is good unless something else is said, and at most: a machine may have to be made first. */
export const ENROLMENT_MINUTES = 15
export const ENROLMENT_MINUTES_MAX = 24 * 60

/** What a certificate says of its owner, as a URI among its alternative names. */
export const hostUri = (hostId: string) => `urn:floe:host:${hostId}`
export const rightUri = (right: AgentRight) => `urn:floe:right:${right}`

/** The URIs of a certificate's alternative names, as Node writes them: `URI:urn:…, DNS:…`. */
export function urisOf(subjectAltName: string | undefined): string[] {
  return (subjectAltName ?? '')
    .split(', ')
    .filter((name) => name.startsWith('URI:'))
    .map((name) => name.slice(4))
}

/** The greatest right among a certificate's alternative names; null when it has none. */
export function rightOf(subjectAltName: string | undefined): AgentRight | null {
  const uris = urisOf(subjectAltName)
  if (uris.includes(rightUri('task'))) return 'task'
  return uris.includes(rightUri('read')) ? 'read' : null
}
