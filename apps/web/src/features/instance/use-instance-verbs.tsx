'use client'
import type { OperationId } from '@floe/domain'
import { useToast } from '@floe/ui'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useTRPC } from '@/trpc/client'
import { OperationLink } from '../operation/operation-link'

/** The verbs of an instance as mutations; each reports in a toast that it was asked for, with the operation's address. */
export function useInstanceVerbs(name: string) {
  const trpc = useTRPC()
  const toast = useToast()
  const queries = useQueryClient()
  const asked = (verb: string) => ({
    onSuccess: ({ operationId }: { operationId: OperationId }) => {
      void queries.invalidateQueries({ queryKey: trpc.instance.pathKey() })
      toast({
        tone: 'info',
        title: `${verb} of ${name} requested`,
        action: <OperationLink operationId={operationId} />,
      })
    },
  })
  return {
    start: useMutation(trpc.instance.start.mutationOptions(asked('Start'))),
    stop: useMutation(trpc.instance.stop.mutationOptions(asked('Stop'))),
    restart: useMutation(trpc.instance.restart.mutationOptions(asked('Restart'))),
    separate: useMutation(trpc.instance.separate.mutationOptions(asked('Separation'))),
    adopt: useMutation(trpc.instance.adopt.mutationOptions(asked('Adoption'))),
    reload: useMutation(trpc.instance.reload.mutationOptions(asked('Reload'))),
    requireTls: useMutation(trpc.instance.requireTls.mutationOptions(asked('TLS for clients'))),
    remove: useMutation(trpc.instance.delete.mutationOptions(asked('Delete'))),
  }
}
