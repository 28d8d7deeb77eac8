import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import {
  type AgentHandlers,
  type CertificateTime,
  createAgentRouter,
  noCertificate,
} from '@floe/agent-contract'
import { type AgentRight, CALLS_AT_ONCE_MAX, FaultError, rightOf, toFault } from '@floe/domain'
import type { Log } from '@floe/host/log'
import type { AgentIdentity, ServedIdentity } from '../identity'
import type { AgentInstallation } from '../installation'
import { openMetricsType } from '../metrics/open-metrics'
import { answerCall, bodyOf, type CallOptions } from './call'

export type Outlets = {
  handlers: AgentHandlers
  /** OpenMetrics text. */
  metrics: () => Promise<string>
  /** `problems`: codes of what is wrong with the agent itself; reported to callers with a certificate. */
  health: () => { ok: boolean; instances: number; startedAt: number; problems: string[] }
}

/** What the agent's server takes of anybody, before it is known who that is. */
export const limits = {
  handshakeMs: 10_000,
  /** A request's head and the whole of it have to be here by then. Answers may last: streams do. */
  headMs: 10_000,
  requestMs: 25_000,
  /** How often that is looked at. */
  lookEveryMs: 2_000,
  /** A connection on which nothing moves; a living stream says something every 3 s. */
  silentMs: 120_000,
  /** A connection between two requests. */
  keptMs: 72_000,
  headBytes: 16 * 1024,
  headers: 100,
  bodyBytes: 4 * 1024 * 1024,
  connections: 1_000,
  /** Of one address: a console needs a handful. This machine's may be the console's. */
  connectionsOfPeer: 200,
  connectionsOfThisMachine: 800,
}

const HEALTH = '/healthz'
const METRICS = '/metrics'
const CALLS = '/trpc/'

/** What the certificate of a connection lets its caller do; null for none, or one that the authority did not sign. */
export function rightOfConnection({ socket }: Pick<IncomingMessage, 'socket'>): AgentRight | null {
  const tls = socket as TLSSocket
  return tls.authorized ? rightOf(tls.getPeerCertificate()?.subjectaltname) : null
}

/** What is wrong with the time of a certificate that the authority did sign; null for every other one. */
function refusedTime({ socket }: Pick<IncomingMessage, 'socket'>, authority: string): CertificateTime | null {
  const tls = socket as TLSSocket
  // Node's name of the last of the reasons; its types say Error
  const reason = String(tls.authorizationError ?? '')
  if (!reason.startsWith('CERT_')) return null
  if (!tls.getPeerX509Certificate()?.verify(new X509Certificate(authority).publicKey)) return null
  if (reason.includes('CERT_HAS_EXPIRED')) return 'expired'
  return reason.includes('CERT_NOT_YET_VALID') ? 'not yet valid' : null
}

const served = (identity: ServedIdentity) => ({
  ...identity,
  minVersion: 'TLSv1.3' as const,
  // who shows no certificate of the authority is answered with words, and may ask for /healthz
  requestCert: true,
  rejectUnauthorized: false,
})

/** A connection over the bound is ended before its handshake, which is what costs. Returns what ends all of them. */
function boundConnections(server: Server, given: typeof limits): () => void {
  server.maxConnections = given.connections
  server.maxHeadersCount = given.headers
  const open = new Set<Socket>()
  const ofPeer = new Map<string, number>()
  server.on('connection', (socket: Socket) => {
    const peer = socket.remoteAddress ?? ''
    const max = /^(::1$|(::ffff:)?127\.)/.test(peer)
      ? given.connectionsOfThisMachine
      : given.connectionsOfPeer
    const here = ofPeer.get(peer) ?? 0
    if (here >= max) return void socket.destroy()
    open.add(socket)
    ofPeer.set(peer, here + 1)
    socket.once('close', () => {
      open.delete(socket)
      const left = (ofPeer.get(peer) ?? 1) - 1
      if (left > 0) ofPeer.set(peer, left)
      else ofPeer.delete(peer)
    })
  })
  return () => {
    for (const socket of open) socket.destroy()
  }
}

function say(response: ServerResponse, status: number, type: string, text: string): void {
  response.statusCode = status
  response.setHeader('content-type', type)
  response.end(text)
}

function answer(response: ServerResponse, status: number, said: object): void {
  say(response, status, 'application/json; charset=utf-8', JSON.stringify(said))
}

/** Refuses a request whose body is not read: the connection ends with it. */
function refuse(response: ServerResponse, status: number, said: object): void {
  response.setHeader('connection', 'close')
  answer(response, status, said)
}

/**
 * Serves the contract and /metrics at the host's address to callers with a certificate of the installation, and /healthz,
 * which reports to all others no more than that it serves. Node's own server, without a framework: every library here is memory
 * that the instances of the host lack.
 */
export async function listen(
  installation: AgentInstallation,
  identity: AgentIdentity,
  outlets: Outlets,
  log: Log,
  given = limits,
): Promise<() => Promise<void>> {
  const options: CallOptions = {
    router: createAgentRouter(outlets.handlers),
    maxBatchSize: CALLS_AT_ONCE_MAX,
    onError: ({ path, error }) => {
      // a stream fails as it runs: what is refused there is the caller's matter like anywhere else
      if (error.code === 'INTERNAL_SERVER_ERROR' && !(error.cause instanceof FaultError))
        log.error('call.failed', { path, stack: error.cause?.stack ?? error.stack })
    },
  }

  async function call(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    let body: string | null = ''
    if (request.method === 'POST') {
      if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? ''))
        return refuse(response, 415, { code: 'agent.bad_request', message: 'a call has to be JSON' })
      body = await bodyOf(request, given.bodyBytes)
      if (body === null)
        return refuse(response, 413, { code: 'agent.bad_request', message: 'the call is too long' })
    }
    const context = {
      right: rightOfConnection(request),
      refused: refusedTime(request, installation.authority),
    }
    await answerCall(request, response, { path, body, context, options })
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '' } = request
    const right = rightOfConnection(request)
    // before anything but the head of a request is read; calls of the contract are answered in its own form
    if (url !== HEALTH && right === null && !(url.startsWith(CALLS) && method === 'GET'))
      return refuse(response, 401, noCertificate(refusedTime(request, installation.authority)).fault)
    const path = url.split('?', 1)[0] as string
    if (path.startsWith(CALLS) && !path.includes('/', CALLS.length))
      return call(request, response, path.slice(CALLS.length))
    const reads = method === 'GET' || method === 'HEAD'
    if (reads && path === HEALTH) {
      const health = outlets.health()
      return answer(response, 200, right === null ? { ok: health.ok } : health)
    }
    if (reads && path === METRICS) return say(response, 200, openMetricsType, await outlets.metrics())
    refuse(response, 404, { code: 'agent.not_found', message: 'the agent serves nothing at this path' })
  }

  const server = createServer(
    {
      ...served(identity.served),
      handshakeTimeout: given.handshakeMs,
      headersTimeout: given.headMs,
      requestTimeout: given.requestMs,
      connectionsCheckingInterval: given.lookEveryMs,
      keepAliveTimeout: given.keptMs,
      maxHeaderSize: given.headBytes,
    },
    (request, response) =>
      void respond(request, response).catch((error: unknown) => {
        // who asked has left
        if (response.destroyed || request.destroyed) return
        log.error('request.failed', { stack: error instanceof Error ? error.stack : String(error) })
        if (response.headersSent) response.destroy()
        else refuse(response, 500, toFault(error))
      }),
  )
  server.setTimeout(given.silentMs)
  const endAll = boundConnections(server, given)
  identity.onChange((next) => server.setSecureContext(served(next)))
  server.listen({ host: installation.hostAddress, port: installation.agentPort })
  await once(server, 'listening')
  return async () => {
    const closed = once(server, 'close')
    server.close()
    // a stream never ends on its own
    endAll()
    await closed
  }
}
