import { CALLS_AT_ONCE_MAX, Fault, FaultError, fault, type Installation, OperationId } from '@floe/domain'
import type { AppRouter } from '@floe/web/api'
import {
  createTRPCClient,
  httpBatchLink,
  httpSubscriptionLink,
  retryLink,
  splitLink,
  TRPCClientError,
} from '@trpc/client'
import { EventSource } from 'eventsource'
import superjson from 'superjson'
import { type Home, readSecret } from '../installation/home'
import { socketFetch, socketUrl } from './socket'

const CALL_MS = 15_000

/** A console: what its addresses begin with, the token it is asked with, and the way to it. */
export type ConsoleAt = { origin: string; token: string; fetch: ReturnType<typeof socketFetch> }

/** A typed client of this installation's console, over its Unix socket and with the command line's token. */
export const createConsoleClient = (home: Home, installation: Installation) =>
  createClientOf({
    origin: socketUrl(installation),
    token: readSecret(home, 'cliToken'),
    fetch: socketFetch(installation),
  })

/** A typed client of a console. */
export function createClientOf({ origin, token, fetch }: ConsoleAt) {
  const url = `${origin}/api/trpc`
  const authorization = `Bearer ${token}`
  class TokenEventSource extends EventSource {
    constructor(source: string | URL) {
      super(source, {
        fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, authorization } }),
      })
    }
  }
  const trpc = createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: (operation) => operation.type === 'subscription',
        true: [
          // the console may be restarted while we listen
          retryLink({ retry: ({ attempts }) => attempts <= 20, retryDelayMs: () => 500 }),
          httpSubscriptionLink({ url, transformer: superjson, EventSource: TokenEventSource }),
        ],
        false: httpBatchLink({
          url,
          transformer: superjson,
          maxItems: CALLS_AT_ONCE_MAX,
          headers: { authorization },
          fetch: (input, init) =>
            fetch(input, { ...init, signal: AbortSignal.timeout(CALL_MS) } as RequestInit),
        }),
      }),
    ],
  })
  /** A file of the console's, to be read as it comes; throws the console's own fault. */
  const get = async (path: string): Promise<ReadableStream<Uint8Array>> => {
    const answer = await fetch(`${origin}${path}`, { headers: { authorization } })
    if (answer.ok && answer.body) return answer.body
    const { fault: said } = (await answer.json().catch(() => ({}))) as { fault?: unknown }
    const parsed = Fault.safeParse(said)
    throw parsed.success
      ? new FaultError(parsed.data)
      : fault('console.unexpected', `the console answered with status ${answer.status}`)
  }
  return { trpc, get }
}
export type ConsoleClient = ReturnType<typeof createConsoleClient>

/** Says how to look at the operation that has to end first, where that is why. */
function withBlocking(fault: Fault, blockingOperationId: unknown): Fault {
  const id = OperationId.safeParse(blockingOperationId)
  if (!id.success) return fault
  const look = `"./floe operation show ${id.data}" shows it.`
  return { ...fault, hint: fault.hint ? `${fault.hint} ${look}` : look }
}

/** The fault behind an error of the client: the console's own, or that it cannot be reached. */
export function consoleFault(error: unknown): FaultError {
  for (let cause = error, depth = 0; cause && depth < 6; depth++) {
    if (cause instanceof FaultError) return cause
    cause = (cause as { cause?: unknown }).cause
  }
  if (error instanceof TRPCClientError) {
    const data = error.data as { fault?: unknown; blockingOperationId?: unknown } | undefined
    const parsed = Fault.safeParse(data?.fault)
    if (parsed.success) return new FaultError(withBlocking(parsed.data, data?.blockingOperationId), error)
  }
  const detail = error instanceof Error ? error.message : String(error)
  return fault('console.unreachable', 'could not reach the console', {
    detail,
    hint: 'Check that Floe runs: "./floe status"; start it with "./floe up".',
    cause: error,
  })
}
