'use client'
import type { Fault } from '@floe/domain'
import { useState } from 'react'
import { faultOf } from '@/trpc/fault'

type Read = { status: 'pending' | 'error' | 'success'; error: unknown }

/**
 * The fault of something that is asked again and again. A query without an answer is pending each time it is asked: its last
 * fault stands meanwhile, so that the page does not jump. `what` distinguishes questions.
 */
export function useStandingFault({ status, error }: Read, what: string): Fault | null {
  const [kept, setKept] = useState<{ what: string; error: unknown } | null>(null)
  const last = kept?.what === what ? kept.error : null
  const standing = error ?? (status === 'pending' ? last : null)
  if (standing !== last || (kept !== null && kept.what !== what)) setKept({ what, error: standing })
  return standing ? faultOf(standing) : null
}
