'use client'
import { HOST_STALE_MS } from '@floe/domain'
import { useNow } from '@floe/ui'

/** Age of an observation where it is too old to be believed, else null; null as well before anything was observed. */
export function useStaleAge(observedAt: number | null): number | null {
  const now = useNow()
  if (now === null || observedAt === null) return null
  const age = now - observedAt
  return age >= HOST_STALE_MS ? age : null
}
