import { randomUUID } from 'node:crypto'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { type AgentHandlers, createAgentRouter } from '@floe/agent-contract'
import { fault, rightOf } from '@floe/domain'
import type { Sample } from '@floe/telemetry'
import { makeTestAuthority } from '@floe/testkit'
import { createHTTPHandler } from '@trpc/server/adapters/standalone'

/**
 * An agent for tests of the console that only knows telemetry: the contract's own router over real HTTPS, samples from a
 * list that the test adds to, and connections that the test cuts.
 */
export async function telemetryAgent() {
  const authority = await makeTestAuthority()
  const hostId = randomUUID()
  const served = await authority.host(hostId)
  const identity = await authority.console('read')
  const ring: Sample[] = []
  let wake: (() => void)[] = []
  let streams = 0
  const handlers = {
    async readTelemetry({ afterSeq, limit }) {
      const samples = ring.filter((s) => s.seq > afterSeq).slice(0, limit)
      return { samples, oldestSeq: ring[0]?.seq ?? null, newestSeq: ring.at(-1)?.seq ?? null }
    },
    async *streamTelemetry({ afterSeq }, signal) {
      streams++
      let cursor = afterSeq ?? (ring.at(-1)?.seq ?? 1) - 1
      try {
        while (!signal?.aborted) {
          for (const sample of ring.filter((s) => s.seq > cursor)) {
            cursor = sample.seq
            yield sample
          }
          await new Promise<void>((resolve) => {
            wake.push(resolve)
            signal?.addEventListener('abort', () => resolve(), { once: true })
          })
        }
      } finally {
        streams--
      }
    },
  } satisfies Partial<AgentHandlers>
  const refuse = () => Promise.reject(fault('agent.not_in_test', 'this agent only knows telemetry'))
  const router = createAgentRouter(
    new Proxy(handlers as unknown as AgentHandlers, {
      get: (target, name: keyof AgentHandlers) => target[name] ?? refuse,
    }),
  )
  const server = createServer(
    { key: served, cert: served, ca: authority.certificate, requestCert: true },
    createHTTPHandler({
      router,
      basePath: '/trpc/',
      createContext: ({ req }) => ({
        right: rightOf((req.socket as TLSSocket).getPeerCertificate().subjectaltname),
      }),
    }),
  )
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const { port } = server.address() as AddressInfo
  return {
    url: `https://127.0.0.1:${port}`,
    hostId,
    authority: authority.certificate,
    /** What a console shows it that may only read. */
    identity,
    ring,
    /** Streams open now. */
    streams: () => streams,
    /** Takes samples until `seq`, one a millisecond of their own clock. */
    sampleUntil(seq: number) {
      for (let n = (ring.at(-1)?.seq ?? 0) + 1; n <= seq; n++)
        ring.push({ seq: n, at: 1_000_000 + n * 1_000, intervalMs: 1_000, values: { tps: n } })
      const woken = wake
      wake = []
      for (const w of woken) w()
    },
    /** Cuts every connection; a client that reconnects is served. */
    cut: () => server.closeAllConnections(),
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
    start: () => listen(port),
  }
}
export type TelemetryAgent = Awaited<ReturnType<typeof telemetryAgent>>
