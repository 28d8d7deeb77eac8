'use client'
import type { Fault } from '@floe/domain'
import { useToast } from '@floe/ui'
import { faultOf } from '@/trpc/fault'
import { wayOut } from './refusal'

/** Shows a refusal where no dialog is open to show it in. */
export function useRefusalToast() {
  const toast = useToast()
  return (error: unknown) => {
    const fault: Fault = faultOf(error)
    toast({
      tone: 'bad',
      title: fault.message,
      description: [fault.detail, fault.hint].filter(Boolean).join(' ') || undefined,
      action: wayOut(error),
    })
  }
}
