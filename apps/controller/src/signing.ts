import type { Authority } from '@floe/authority'
import { LOOPBACK } from '@floe/domain'

/** What hosts' certificates are signed with. */
export type Signing = { authority: Authority; lifetimeMs?: number | undefined }

/** The names a certificate serves: where the agent is dialled, and its own machine. */
export const addressesOf = (agentUrl: string) => [
  new URL(agentUrl).hostname.replace(/^\[|\]$/g, ''),
  LOOPBACK,
  'localhost',
]
