import type { PeerCertificate } from 'node:tls'
import { Fault, FaultError, fault, hostUri, urisOf } from '@floe/domain'
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
import { boundedAnswer } from './bounded-answer'
import type { AgentRouter } from './router'

export type AgentEndpoint = {
  /** `https://host:port` */
  url: string
  /** The host whose agent must answer there: its certificate says so, whatever the address. */
  hostId: string
  /** PEM of the installation's authority. */
  authority: string
  /** Certificate and key of the caller, in one PEM text. */
  identity: string
  /** True for the sha256 (hexadecimal) of a certificate that is not to be accepted any more. */
  isRevoked?: (fingerprint: string) => boolean
  /** Deadline of every call that is not a stream, in ms. */
  timeoutMs?: number
}

/** What distinguishes an agent's certificate from every other: signed by the authority, of the right host, not revoked. */
export function agentTls(endpoint: Pick<AgentEndpoint, 'authority' | 'identity' | 'hostId' | 'isRevoked'>) {
  return {
    ca: endpoint.authority,
    cert: endpoint.identity,
    key: endpoint.identity,
    minVersion: 'TLSv1.3' as const,
    checkServerIdentity: (_address: string, certificate: PeerCertificate) =>
      certificateFault(endpoint, certificate),
  }
}

function certificateFault(
  { hostId, isRevoked }: Pick<AgentEndpoint, 'hostId' | 'isRevoked'>,
  certificate: PeerCertificate,
): FaultError | undefined {
  const uris = urisOf(certificate.subjectaltname)
  if (!uris.includes(hostUri(hostId)))
    return fault('agent.wrong_host', 'another host’s agent answers at this address', {
      detail: `Its certificate is of ${uris.find((uri) => uri.startsWith(hostUri(''))) ?? 'no host'}.`,
      hint: 'Check the address of the agent.',
    })
  if (isRevoked?.(certificate.fingerprint256.replaceAll(':', '').toLowerCase()))
    return fault('agent.certificate_revoked', 'the agent answers with a certificate that was revoked', {
      hint: 'Enrol the host again: "./floe host add NAME --again".',
    })
  return undefined
}

const QUESTIONS_AT_ONCE = 10

/** A typed client of one agent. Both sides show certificates of the authority; call `close()` when done. */
export function createAgentClient(endpoint: AgentEndpoint) {
  const timeoutMs = endpoint.timeoutMs ?? 3_000
  // undici's default body timeout would end an idle stream after 300 s
  const dispatcher = new Agent({
    bodyTimeout: 0,
    connect: {
      ...agentTls(endpoint),
      timeout: timeoutMs,
      // a resumed session is not checked again
      maxCachedSessions: 0,
    },
  })
  const call = ((url: string | URL, init?: { signal?: AbortSignal }) => {
    const deadline = AbortSignal.timeout(timeoutMs)
    const signal = init?.signal ? AbortSignal.any([init.signal, deadline]) : deadline
    return undiciFetch(url, { ...init, dispatcher, signal }).then((answer) => boundedAnswer(answer, 'all'))
  }) as unknown as typeof fetch
  class AgentEventSource extends EventSource {
    constructor(url: string | URL) {
      super(url, {
        fetch: ((u: string | URL, init?: object) =>
          undiciFetch(u, { ...init, dispatcher }).then((answer) => boundedAnswer(answer, 'line'))) as never,
      })
    }
  }
  const url = `${endpoint.url}/trpc`
  const trpc = createTRPCClient<AgentRouter>({
    links: [
      splitLink({
        condition: (op) => op.type === 'subscription',
        true: httpSubscriptionLink({ url, transformer: superjson, EventSource: AgentEventSource as never }),
        // many questions at once must not grow past what an HTTP server takes as an address; to know that, the link
        // writes the whole address again for each question it adds, so that few at once cost far less than many
        false: httpBatchLink({
          url,
          transformer: superjson,
          fetch: call,
          maxURLLength: 8_000,
          maxItems: QUESTIONS_AT_ONCE,
        }),
      }),
    ],
  })
  return { trpc, close: () => dispatcher.destroy() }
}
export type AgentClient = ReturnType<typeof createAgentClient>

/** A client's questions without what changes something. */
type QuestionsOf<T> = {
  [K in keyof T as T[K] extends { mutate: unknown } ? never : K]: T[K] extends
    | { query: unknown }
    | { subscribe: unknown }
    ? T[K]
    : QuestionsOf<T[K]>
}
/** What a client with the right to read may query of an agent. The agent holds a reader's certificate to the same. */
export type AgentQuestions = QuestionsOf<AgentClient['trpc']>

/** What OpenSSL calls a certificate that was good and is too old, and those that another authority signed. */
const expired = ['CERT_HAS_EXPIRED', 'ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED']
const foreign = [
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_SIGNATURE_FAILURE',
]

/**
 * The fault behind an error of the client: the agent's own, what is wrong with its certificate, or `agent.unreachable`.
 * Only the last one passes without anybody's help.
 */
export function agentFault(error: unknown): Fault {
  let cause: unknown = error
  for (let depth = 0; depth < 6 && cause; depth++) {
    if (cause instanceof FaultError) return cause.fault
    if (cause instanceof TRPCClientError) {
      const parsed = Fault.safeParse((cause.data as { fault?: unknown } | undefined)?.fault)
      if (parsed.success) return parsed.data
    }
    const code = String((cause as { code?: unknown }).code)
    if (expired.includes(code))
      return {
        code: 'agent.certificate_expired',
        message: 'the agent’s certificate has expired',
        detail:
          'Certificates are renewed by the console; this host was away for longer than its own was good.',
        hint: 'Enrol the host again: "./floe host add NAME --again". On the console’s machine run "./floe up".',
      }
    if (foreign.includes(code))
      return {
        code: 'agent.certificate_foreign',
        message: 'the agent’s certificate is not of this installation',
        detail: 'Another authority signed it.',
        hint: 'Check the address of the agent, or enrol the host again: "./floe host add NAME --again".',
      }
    cause = (cause as { cause?: unknown }).cause
  }
  return {
    code: 'agent.unreachable',
    message: 'could not reach the agent',
    detail: error instanceof Error ? error.message : String(error),
    hint: 'Check that the agent is running: "./floe status" on its host.',
  }
}
