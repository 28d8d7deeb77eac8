'use client'
import { useNow } from '@floe/ui'

/** Age of what a host's agent said last, where that is not to be taken for what is; null while it is, or was never said. */
export function useHostAge(host: { state: string; observedAt: number | null }): number | null {
  const now = useNow()
  if (host.state === 'online' || now === null || host.observedAt === null) return null
  return Math.max(0, now - host.observedAt)
}
