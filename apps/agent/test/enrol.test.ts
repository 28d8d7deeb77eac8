import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type EnrolmentAnswer, EnrolmentRequest, enrolmentMessage } from '@floe/agent-contract'
import {
  enrolmentTokenHash,
  fingerprintOf,
  identityIsGood,
  issueHostCertificate,
  makeEnrolmentToken,
  tokenHashOfProof,
} from '@floe/authority'
import { hostUri, secretFiles } from '@floe/domain'
import { makeScratchDirectory, makeTestAuthority, type TestAuthority } from '@floe/testkit'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'

const hostId = randomUUID()
const installationId = randomUUID()
let authority: TestAuthority
let scratch: ReturnType<typeof makeScratchDirectory>
let home: string
let asked: EnrolmentRequest[]
/** What the console answers; the tests put their own in its place. */
let answer: (request: EnrolmentRequest) => Promise<{ status: number; body: unknown }>
let server: ReturnType<typeof createServer>
let console_: string

const enrolled = async (request: string, by = authority, id = hostId): Promise<EnrolmentAnswer> => ({
  state: 'enrolled',
  installationId,
  hostId: hostId as never,
  hostName: 'db2',
  certificate: await issueHostCertificate(by.signing, { request, hostId: id, addresses: ['127.0.0.1'] }),
  authority: by.certificate,
})

beforeEach(async () => {
  authority = await makeTestAuthority()
  scratch = makeScratchDirectory()
  home = join(scratch.path, 'h')
  asked = []
  answer = async ({ request }) => ({ status: 200, body: await enrolled(request) })
  server = createServer((incoming, response) => {
    let text = ''
    incoming.setEncoding('utf8').on('data', (more: string) => {
      text += more
    })
    incoming.on('end', async () => {
      const request = EnrolmentRequest.parse(JSON.parse(text))
      asked.push(request)
      const { status, body } = await answer(request)
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  console_ = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(() => {
  server.close()
  scratch.remove()
})

/** Runs the built agent as `./floe agent enrol` does. */
function enrol(o: { token: string; console?: string; authority?: string }) {
  const child = spawn(process.execPath, [inject('bundle'), 'enrol'], {
    env: { ...process.env, FLOE_HOME: home, NODE_OPTIONS: '' },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    stdout += more
  })
  child.stdin.end(
    JSON.stringify({
      console: console_,
      authority: `sha256:${fingerprintOf(authority.certificate)}`,
      agentUrl: 'https://10.0.0.2:3001',
      ...o,
    }),
  )
  return new Promise<{
    status: number | null
    answer: Record<string, unknown> & { fault?: { code: string } }
  }>((resolve) => child.once('close', (status) => resolve({ status, answer: JSON.parse(stdout) })))
}
const secret = (name: keyof typeof secretFiles) => join(home, 'secrets', secretFiles[name])

test('a host makes its key, proves the token without sending it, and keeps what only it can read', async () => {
  const token = makeEnrolmentToken()
  const { status, answer: said } = await enrol({ token })
  expect([status, said]).toEqual([0, { installationId, hostId, hostName: 'db2' }])
  const [request] = asked as [EnrolmentRequest]
  expect(tokenHashOfProof(request, enrolmentMessage(request))).toBe(enrolmentTokenHash(token))
  expect(JSON.stringify(request)).not.toContain(token.slice(5))
  expect(JSON.stringify(request)).not.toContain('PRIVATE KEY')
  expect(request.agentUrl).toBe('https://10.0.0.2:3001')
  expect(readFileSync(secret('authority'), 'utf8')).toBe(authority.certificate)
  expect(
    identityIsGood(readFileSync(secret('agentIdentity'), 'utf8'), {
      authority: authority.certificate,
      uri: hostUri(hostId),
    }),
  ).toBe(true)
  for (const name of ['authority', 'agentIdentity'] as const)
    expect(statSync(secret(name)).mode & 0o777).toBe(0o600)
  expect(readdirSync(join(home, 'secrets')).sort()).toEqual(['agent.pem', 'ca.pem'])
})

test('an answer of another authority, also one that claims to be, leaves nothing behind', async () => {
  const foreign = await makeTestAuthority()
  answer = async ({ request }) => ({ status: 200, body: await enrolled(request, foreign) })
  const first = await enrol({ token: makeEnrolmentToken() })
  expect([first.status, first.answer.fault?.code]).toEqual([1, 'enrolment.wrong_authority'])
  // the right authority’s certificate beside a host certificate that it did not sign
  answer = async ({ request }) => ({
    status: 200,
    body: { ...(await enrolled(request, foreign)), authority: authority.certificate },
  })
  const second = await enrol({ token: makeEnrolmentToken() })
  expect(second.answer.fault?.code).toBe('enrolment.wrong_certificate')
  answer = async ({ request }) => ({ status: 200, body: await enrolled(request, authority, randomUUID()) })
  expect((await enrol({ token: makeEnrolmentToken() })).answer.fault?.code).toBe(
    'enrolment.wrong_certificate',
  )
  expect(existsSync(secret('authority'))).toBe(false)
  expect(existsSync(secret('agentIdentity'))).toBe(false)
})

test('a run that was interrupted asks again with the same key, and waits while the controller has not signed', async () => {
  const token = makeEnrolmentToken()
  answer = async () => ({ status: 503, body: { code: 'database.unreachable', message: 'not now' } })
  expect((await enrol({ token })).answer.fault?.code).toBe('database.unreachable')
  answer = async ({ request }) => ({
    status: 200,
    body: asked.length < 4 ? { state: 'pending' } : await enrolled(request),
  })
  expect((await enrol({ token })).status).toBe(0)
  expect(asked.length).toBeGreaterThanOrEqual(4)
  expect(new Set(asked.map(({ request }) => request)).size).toBe(1)
})

test('a console that refuses, is not there, or a text that is no token is said so', async () => {
  answer = async () => ({
    status: 403,
    body: { code: 'enrolment.token_expired', message: 'this token has expired' },
  })
  expect((await enrol({ token: makeEnrolmentToken() })).answer.fault?.code).toBe('enrolment.token_expired')
  expect((await enrol({ token: 'not-a-token' })).answer.fault?.code).toBe('usage.token')
  expect(
    (await enrol({ token: makeEnrolmentToken(), console: 'http://127.0.0.1:1' })).answer.fault?.code,
  ).toBe('console.unreachable')
  answer = async () => ({ status: 502, body: 'a proxy’s page' })
  expect((await enrol({ token: makeEnrolmentToken() })).answer.fault?.code).toBe('enrolment.refused')
})
