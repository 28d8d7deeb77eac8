import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { type AgentHandlers, type AgentRouter, createAgentRouter, noCertificate } from '@floe/agent-contract'
import { type AgentRight, rightOf } from '@floe/domain'
import { type FastifyTRPCPluginOptions, fastifyTRPCPlugin } from '@trpc/server/adapters/fastify'
import Fastify from 'fastify'
import type { AgentIdentity, ServedIdentity } from '../identity'
import type { AgentInstallation } from '../installation'
import type { Log } from '../log'
import { openMetricsType } from '../metrics/open-metrics'

export type Outlets = {
  handlers: AgentHandlers
  /** OpenMetrics text. */
  metrics: () => Promise<string>
  /** `problems`: codes of what is wrong with the agent itself. */
  health: () => { ok: boolean; instances: number; startedAt: number; problems: string[] }
}

const HEALTH = '/healthz'

/** What the certificate of a connection lets its caller do; null for none, or one that the authority did not sign. */
export function rightOfConnection({ socket }: Pick<IncomingMessage, 'socket'>): AgentRight | null {
  const tls = socket as TLSSocket
  return tls.authorized ? rightOf(tls.getPeerCertificate()?.subjectaltname) : null
}

const served = (identity: ServedIdentity) => ({
  ...identity,
  minVersion: 'TLSv1.3' as const,
  // who shows no certificate of the authority is answered with words, and may ask for /healthz
  requestCert: true,
  rejectUnauthorized: false,
})

/**
 * Serves the contract and /metrics at the host's address to callers with a certificate of the installation, and /healthz,
 * which tells nothing secret, to all.
 */
export async function listen(
  installation: AgentInstallation,
  identity: AgentIdentity,
  outlets: Outlets,
  log: Log,
): Promise<() => Promise<void>> {
  const app = Fastify({
    https: served(identity.served),
    // a stream never ends by itself; without this the close would wait for it
    forceCloseConnections: true,
    bodyLimit: 4 * 1024 * 1024,
    // batched calls name every procedure in the path
    routerOptions: { maxParamLength: 5_000 },
  })
  identity.onChange((next) => app.server.setSecureContext(served(next)))
  // before anything but the head of a request is read; calls of the contract are answered in its own form
  app.addHook('onRequest', async (request, reply) => {
    if (request.url === HEALTH || rightOfConnection(request.raw) !== null) return
    if (!request.url.startsWith('/trpc/') || request.method !== 'GET')
      return reply.code(401).header('connection', 'close').send(noCertificate().fault)
  })
  app.get(HEALTH, () => outlets.health())
  app.get('/metrics', async (_request, reply) => reply.type(openMetricsType).send(await outlets.metrics()))
  await app.register(fastifyTRPCPlugin, {
    prefix: '/trpc',
    trpcOptions: {
      router: createAgentRouter(outlets.handlers),
      createContext: ({ req }) => ({ right: rightOfConnection(req.raw) }),
      onError: ({ path, error }) => {
        if (error.code === 'INTERNAL_SERVER_ERROR')
          log.error('call.failed', { path, stack: error.cause?.stack ?? error.stack })
      },
    } satisfies FastifyTRPCPluginOptions<AgentRouter>['trpcOptions'],
  })
  await app.listen({ host: installation.hostAddress, port: installation.agentPort })
  return () => app.close()
}
