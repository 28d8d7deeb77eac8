import { type AgentHandlers, type AgentRouter, createAgentRouter } from '@floe/agent-contract'
import { type FastifyTRPCPluginOptions, fastifyTRPCPlugin } from '@trpc/server/adapters/fastify'
import Fastify from 'fastify'
import type { AgentInstallation } from '../installation'
import type { Log } from '../log'
import { openMetricsType } from '../metrics/open-metrics'
import { keyOf } from './keys'

export type Outlets = {
  handlers: AgentHandlers
  /** OpenMetrics text. */
  metrics: () => Promise<string>
  /** `problems`: codes of what is wrong with the agent itself. */
  health: () => { ok: boolean; instances: number; startedAt: number; problems: string[] }
}

/** Serves the contract, /healthz (open to all, tells nothing secret) and /metrics (either key) at 127.0.0.1. */
export async function listen(
  installation: AgentInstallation,
  outlets: Outlets,
  log: Log,
): Promise<() => Promise<void>> {
  const keys = { read: installation.readKey, task: installation.taskKey }
  const app = Fastify({
    https: { key: installation.certificateKey, cert: installation.certificate, minVersion: 'TLSv1.2' },
    // a stream never ends by itself; without this the close would wait for it
    forceCloseConnections: true,
    bodyLimit: 4 * 1024 * 1024,
    // batched calls name every procedure in the path
    routerOptions: { maxParamLength: 5_000 },
  })
  app.get('/healthz', () => outlets.health())
  app.get('/metrics', async (request, reply) => {
    if (keyOf(request.headers.authorization, keys) === null)
      return reply.code(401).send({ code: 'agent.no_key', message: 'agent key missing or wrong' })
    return reply.type(openMetricsType).send(await outlets.metrics())
  })
  await app.register(fastifyTRPCPlugin, {
    prefix: '/trpc',
    trpcOptions: {
      router: createAgentRouter(outlets.handlers),
      createContext: ({ req }) => ({ key: keyOf(req.headers.authorization, keys) }),
      onError: ({ path, error }) => {
        if (error.code === 'INTERNAL_SERVER_ERROR')
          log.error('call.failed', { path, stack: error.cause?.stack ?? error.stack })
      },
    } satisfies FastifyTRPCPluginOptions<AgentRouter>['trpcOptions'],
  })
  await app.listen({ host: '127.0.0.1', port: installation.agentPort })
  return () => app.close()
}
