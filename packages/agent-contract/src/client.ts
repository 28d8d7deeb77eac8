import { Fault, FaultError } from '@floe/domain'
import {
  createTRPCClient,
  httpBatchLink,
  httpSubscriptionLink,
  splitLink,
  TRPCClientError,
} from '@trpc/client'
import { EventSource } from 'eventsource'
import superjson from 'superjson'
import { Agent, fetch as undiciFetch } from 'undici'
import type { AgentRouter } from './router'

export type AgentEndpoint = {
  /** `https://host:port` */
  url: string
  /** PEM of the authority that signed the agent's certificate. */
  ca: string
  /** The read key or the task key. */
  key: string
  /** Deadline of every call that is not a stream, in ms. */
  timeoutMs?: number
}

/** A typed client of one agent. Certificates are verified against `ca`; call `close()` when done. */
export function createAgentClient(endpoint: AgentEndpoint) {
  const timeoutMs = endpoint.timeoutMs ?? 3_000
  // undici's default body timeout would end an idle stream after 300 s
  const dispatcher = new Agent({ bodyTimeout: 0, connect: { ca: endpoint.ca, timeout: timeoutMs } })
  const authorization = `Bearer ${endpoint.key}`
  const withKey = (init: object | undefined) => ({
    ...init,
    dispatcher,
    headers: { ...(init as { headers?: Record<string, string> } | undefined)?.headers, authorization },
  })
  const call = ((url: string | URL, init?: { signal?: AbortSignal }) => {
    const deadline = AbortSignal.timeout(timeoutMs)
    const signal = init?.signal ? AbortSignal.any([init.signal, deadline]) : deadline
    return undiciFetch(url, { ...withKey(init), signal })
  }) as unknown as typeof fetch
  class AgentEventSource extends EventSource {
    constructor(url: string | URL) {
      super(url, { fetch: ((u: string | URL, init?: object) => undiciFetch(u, withKey(init))) as never })
    }
  }
  const url = `${endpoint.url}/trpc`
  const trpc = createTRPCClient<AgentRouter>({
    links: [
      splitLink({
        condition: (op) => op.type === 'subscription',
        true: httpSubscriptionLink({ url, transformer: superjson, EventSource: AgentEventSource as never }),
        // many questions at once must not grow past what an HTTP server takes as an address
        false: httpBatchLink({ url, transformer: superjson, fetch: call, maxURLLength: 8_000 }),
      }),
    ],
  })
  return { trpc, close: () => dispatcher.destroy() }
}
export type AgentClient = ReturnType<typeof createAgentClient>

/** The fault behind an error of the client: the agent's own, or `agent.unreachable`. */
export function agentFault(error: unknown): Fault {
  if (error instanceof FaultError) return error.fault
  if (error instanceof TRPCClientError) {
    const parsed = Fault.safeParse((error.data as { fault?: unknown } | undefined)?.fault)
    if (parsed.success) return parsed.data
  }
  return {
    code: 'agent.unreachable',
    message: 'could not reach the agent',
    detail: error instanceof Error ? error.message : String(error),
    hint: 'Check that the agent is running: "./floe status" on its host.',
  }
}
