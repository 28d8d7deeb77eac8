import { randomUUID } from 'node:crypto'
import { fault, HostName, OperationId } from '@floe/domain'
import { createTRPCClient, httpBatchLink, httpSubscriptionLink, splitLink } from '@trpc/client'
import { EventSource } from 'eventsource'
import superjson from 'superjson'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import type { AppRouter } from '../server/api'
import { httpCodeOf } from '../server/faults'
import { serveConsole, type ThrowawayConsole, throwawayConsole } from '../server/testing/throwaway-console'
import { faultOf, isFinal, isNotFound } from './fault'

let it: ThrowawayConsole
let served: Awaited<ReturnType<typeof serveConsole>>
let headers: Record<string, string>
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
  served = await serveConsole(it.ports)
  headers = await it.token()
})
afterAll(async () => {
  await served.close()
  await it.close()
})

/** The console's client as a page has it, over real HTTP. */
function client(url = served.url) {
  class WithToken extends EventSource {
    constructor(at: string | URL) {
      super(at, { fetch: (u, init) => fetch(u, { ...init, headers: { ...init?.headers, ...headers } }) })
    }
  }
  return createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: (op) => op.type === 'subscription',
        true: httpSubscriptionLink({ url, transformer: superjson, EventSource: WithToken as never }),
        false: httpBatchLink({ url, transformer: superjson, headers: () => headers }),
      }),
    ],
  })
}
const errorOf = (asked: Promise<unknown>) =>
  asked.then(
    () => null,
    (error: unknown) => error,
  )

test('what does not exist is a final answer, whatever noun it is of; a console that is away is not', async () => {
  const { host, operation, instance, cluster } = client()
  const unknown = randomUUID()
  for (const asked of [
    host.show.query({ name: HostName.parse('nope') }),
    operation.show.query({ operationId: OperationId.parse(unknown) }),
    instance.show.query({ instanceId: unknown as never }),
    cluster.show.query({ clusterId: unknown as never }),
  ]) {
    const error = await errorOf(asked)
    expect(isNotFound(faultOf(error))).toBe(true)
    expect(isFinal(error)).toBe(true)
  }
  const away = await errorOf(
    client('http://127.0.0.1:1/api/trpc').host.show.query({ name: HostName.parse('x') }),
  )
  expect(faultOf(away).code).toBe('console.unreachable')
  expect(isFinal(away)).toBe(false)
})

test('watching an operation that does not exist ends at once with a final answer', async () => {
  const error = await new Promise<unknown>((resolve) => {
    client().operation.watch.subscribe(
      { operationId: OperationId.parse(randomUUID()) },
      { onError: resolve, onData: () => resolve(null) },
    )
  })
  expect(faultOf(error).code).toBe('operation.not_found')
  expect(isFinal(error)).toBe(true)
})

test('what an agent has to answer for may be over in a moment', () => {
  for (const code of ['agent.unreachable', 'agent.bad_certificate'])
    expect(httpCodeOf(fault(code, 'x'))).toBe('SERVICE_UNAVAILABLE')
})
