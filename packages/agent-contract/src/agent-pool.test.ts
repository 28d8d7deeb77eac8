import type { AgentAddress, FaultError } from '@floe/domain'
import { beforeEach, expect, expectTypeOf, test } from 'vitest'
import { AgentPool } from './agent-pool'
import type { AgentClient, AgentQuestions } from './client'

const alpha: AgentAddress = {
  hostId: 'e4f1a7b0-6a0b-4b51-8c3e-0f6f0c2d7a22',
  hostName: 'alpha',
  // whoever is asked there: what a question ends with is said by the client, where its connections have ended
  agentUrl: 'https://127.0.0.1:64998',
  revoked: false,
  revokedCertificates: [],
}
const beta: AgentAddress = { ...alpha, hostId: '0b0e5a1e-8d39-4d3c-9d3d-1f0a9a4f6c11', hostName: 'beta' }

type Opened = { quick: AgentClient['trpc']; slow: AgentClient['trpc'] }
let identity: string
let pool: AgentPool<Opened>
beforeEach(() => {
  identity = 'first'
  pool = new AgentPool({
    authority: '',
    identity: () => identity,
    open: (connect) => ({ quick: connect(), slow: connect(5_000) }),
  })
})

/** Whether its connections have ended: it says so of every question. */
async function hasEnded({ quick, slow }: Opened): Promise<boolean> {
  const answers = await Promise.all(
    [quick, slow].map((trpc) => trpc.hello.query().catch((error: Error) => codesOf(error))),
  )
  return answers.every((codes) => Array.isArray(codes) && codes.includes('UND_ERR_DESTROYED'))
}
const codesOf = (error: unknown): unknown[] =>
  error instanceof Error ? [(error as { code?: unknown }).code, ...codesOf(error.cause)] : []

test('of a host there is one, as long as nothing changes', async () => {
  const opened = pool.of(alpha)
  expect(pool.of({ ...alpha, hostName: 'renamed' })).toBe(opened)
  expect(pool.of(beta)).not.toBe(opened)
  expect(pool.hosts()).toEqual([alpha.hostId, beta.hostId])
  expect(await hasEnded(opened)).toBe(false)
  pool.close()
  expect(pool.hosts()).toEqual([])
  expect(await hasEnded(opened)).toBe(true)
})

test.each<[string, Partial<AgentAddress>]>([
  ['another address', { agentUrl: 'https://127.0.0.1:64999' }],
  ['another revoked certificate', { revokedCertificates: ['ab'] }],
])('with %s it is made anew, and the former one has ended', async (_, change) => {
  const former = pool.of(alpha)
  const other = pool.of(beta)
  const opened = pool.of({ ...alpha, ...change })
  expect(opened).not.toBe(former)
  expect(await hasEnded(former)).toBe(true)
  expect(await hasEnded(opened)).toBe(false)
  expect(pool.of(beta)).toBe(other)
})

test('a renewed certificate of its own is used at the next question', async () => {
  const former = pool.of(alpha)
  identity = 'second'
  expect(pool.of(alpha)).not.toBe(former)
  expect(await hasEnded(former)).toBe(true)
})

test('to a revoked host there is nothing, and what was open has ended', async () => {
  const opened = pool.of(alpha)
  const ask = () => pool.of({ ...alpha, revoked: true })
  let refused: FaultError | undefined
  try {
    ask()
  } catch (error) {
    refused = error as FaultError
  }
  expect(refused?.fault.code).toBe('host.revoked')
  expect(await hasEnded(opened)).toBe(true)
  expect(pool.hosts()).toEqual([])
})

test.each<[string, AgentAddress | undefined, boolean]>([
  ['is as it was', { ...alpha }, false],
  ['was removed', undefined, true],
  ['was revoked', { ...alpha, revoked: true }, true],
  ['has a revoked certificate', { ...alpha, revokedCertificates: ['ab'] }, true],
  ['answers elsewhere', { ...alpha, agentUrl: 'https://127.0.0.1:64999' }, true],
])('told that a host %s, nobody has to ask for the connections to end', async (_, address, ends) => {
  const opened = pool.of(alpha)
  const other = pool.of(beta)
  pool.review(alpha.hostId, address)
  expect(await hasEnded(opened)).toBe(ends)
  expect(await hasEnded(other)).toBe(false)
  pool.close()
})

test('who may only read has no question by which something changes; tsc checks it', () => {
  expectTypeOf<keyof AgentQuestions['task']>().toEqualTypeOf<'check'>()
  expectTypeOf<keyof AgentQuestions['certificate']>().toEqualTypeOf<never>()
  expectTypeOf<AgentQuestions['telemetry']>().toEqualTypeOf<AgentClient['trpc']['telemetry']>()
})
