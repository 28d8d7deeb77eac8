'use client'
import { CALLS_AT_ONCE_MAX } from '@floe/domain'
import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import {
  createTRPCClient,
  httpBatchStreamLink,
  httpSubscriptionLink,
  retryLink,
  splitLink,
} from '@trpc/client'
import { createTRPCContext } from '@trpc/tanstack-react-query'
import { type ReactNode, useState } from 'react'
import superjson from 'superjson'
import type { AppRouter } from '../server/api'
import { faultOf, isFinal } from './fault'

export const { TRPCProvider, useTRPC, useTRPCClient } = createTRPCContext<AppRouter>()

const url = '/api/trpc'

function createClient() {
  return createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: (op) => op.type === 'subscription',
        true: [
          // EventSource gives up on an HTTP error; the console may only be restarting
          retryLink({
            retry: ({ error }) => !isFinal(error),
            retryDelayMs: (attempt) => Math.min(250 * 2 ** attempt, 3_000),
          }),
          httpSubscriptionLink({ url, transformer: superjson }),
        ],
        false: httpBatchStreamLink({ url, transformer: superjson, maxItems: CALLS_AT_ONCE_MAX }),
      }),
    ],
  })
}

function createQueryClient() {
  return new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        if (faultOf(error).code !== 'session.missing') return
        const here = `${location.pathname}${location.search}`
        location.assign(`/sign-in?next=${encodeURIComponent(here)}`)
      },
    }),
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        retry: (failures, error) => failures < 3 && !isFinal(error),
      },
    },
  })
}

/** Gives every page the console's API by useTRPC(). */
export function TRPCReactProvider({ children }: { children: ReactNode }) {
  const [queryClient] = useState(createQueryClient)
  const [client] = useState(createClient)
  return (
    <QueryClientProvider client={queryClient}>
      <TRPCProvider trpcClient={client} queryClient={queryClient}>
        {children}
      </TRPCProvider>
    </QueryClientProvider>
  )
}
