import { CALLS_AT_ONCE_MAX } from '@floe/domain'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import { createContext } from '@/server/context'
import { ports } from '@/server/ports'
import { appRouter } from '@/server/router'

export const dynamic = 'force-dynamic'

const handler = (request: Request) =>
  fetchRequestHandler({
    endpoint: '/api/trpc',
    req: request,
    router: appRouter,
    maxBatchSize: CALLS_AT_ONCE_MAX,
    createContext: () => createContext(ports(), request.headers),
  })

export { handler as GET, handler as POST }
