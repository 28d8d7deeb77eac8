import { X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Server } from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import {
  type AgentHandlers,
  type AgentRouter,
  type CertificateTime,
  createAgentRouter,
  noCertificate,
} from '@floe/agent-contract'
import { type AgentRight, CALLS_AT_ONCE_MAX, FaultError, rightOf } from '@floe/domain'
import type { Log } from '@floe/host/log'
import { type FastifyTRPCPluginOptions, fastifyTRPCPlugin } from '@trpc/server/adapters/fastify'
import Fastify from 'fastify'
import type { AgentIdentity, ServedIdentity } from '../identity'
import type { AgentInstallation } from '../installation'
import { openMetricsType } from '../metrics/open-metrics'

export type Outlets = {
  handlers: AgentHandlers
  /** OpenMetrics text. */
  metrics: () => Promise<string>
  /** `problems`: codes of what is wrong with the agent itself; told to callers with a certificate. */
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
  headBytes: 16 * 1024,
  headers: 100,
  bodyBytes: 4 * 1024 * 1024,
  connections: 1_000,
  /** Of one address: a console needs a handful. This machine's may be the console's. */
  connectionsOfPeer: 200,
  connectionsOfThisMachine: 800,
}

const HEALTH = '/healthz'

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

/** A connection over the bound is ended before its handshake, which is what costs. */
function boundConnections(server: Server, given: typeof limits) {
  server.maxConnections = given.connections
  server.maxHeadersCount = given.headers
  const ofPeer = new Map<string, number>()
  server.on('connection', (socket: Socket) => {
    const peer = socket.remoteAddress ?? ''
    const max = /^(::1$|(::ffff:)?127\.)/.test(peer)
      ? given.connectionsOfThisMachine
      : given.connectionsOfPeer
    const open = ofPeer.get(peer) ?? 0
    if (open >= max) return void socket.destroy()
    ofPeer.set(peer, open + 1)
    socket.once('close', () => {
      const left = (ofPeer.get(peer) ?? 1) - 1
      if (left > 0) ofPeer.set(peer, left)
      else ofPeer.delete(peer)
    })
  })
}

/**
 * Serves the contract and /metrics at the host's address to callers with a certificate of the installation, and /healthz,
 * which tells all others no more than that it serves.
 */
export async function listen(
  installation: AgentInstallation,
  identity: AgentIdentity,
  outlets: Outlets,
  log: Log,
  given = limits,
): Promise<() => Promise<void>> {
  const app = Fastify({
    https: {
      ...served(identity.served),
      handshakeTimeout: given.handshakeMs,
      headersTimeout: given.headMs,
      connectionsCheckingInterval: given.lookEveryMs,
      maxHeaderSize: given.headBytes,
    },
    requestTimeout: given.requestMs,
    connectionTimeout: given.silentMs,
    // a stream never ends by itself; without this the close would wait for it
    forceCloseConnections: true,
    bodyLimit: given.bodyBytes,
    // batched calls name every procedure in the path
    routerOptions: { maxParamLength: 5_000 },
  })
  boundConnections(app.server, given)
  identity.onChange((next) => app.server.setSecureContext(served(next)))
  // before anything but the head of a request is read; calls of the contract are answered in its own form
  app.addHook('onRequest', async (request, reply) => {
    if (request.url === HEALTH || rightOfConnection(request.raw) !== null) return
    if (!request.url.startsWith('/trpc/') || request.method !== 'GET')
      return reply
        .code(401)
        .header('connection', 'close')
        .send(noCertificate(refusedTime(request.raw, installation.authority)).fault)
  })
  app.get(HEALTH, (request) => {
    const health = outlets.health()
    return rightOfConnection(request.raw) === null ? { ok: health.ok } : health
  })
  app.get('/metrics', async (_request, reply) => reply.type(openMetricsType).send(await outlets.metrics()))
  await app.register(fastifyTRPCPlugin, {
    prefix: '/trpc',
    trpcOptions: {
      router: createAgentRouter(outlets.handlers),
      maxBatchSize: CALLS_AT_ONCE_MAX,
      createContext: ({ req }) => ({
        right: rightOfConnection(req.raw),
        refused: refusedTime(req.raw, installation.authority),
      }),
      onError: ({ path, error }) => {
        // a stream fails as it runs: what is refused there is the caller's matter like anywhere else
        if (error.code === 'INTERNAL_SERVER_ERROR' && !(error.cause instanceof FaultError))
          log.error('call.failed', { path, stack: error.cause?.stack ?? error.stack })
      },
    } satisfies FastifyTRPCPluginOptions<AgentRouter>['trpcOptions'],
  })
  await app.listen({ host: installation.hostAddress, port: installation.agentPort })
  return () => app.close()
}
