import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ENROLMENT_PATH, EnrolmentAnswer, EnrolmentRequest, enrolmentMessage } from '@floe/agent-contract'
import { certificateFits, fingerprintOf } from '@floe/authority/inspect'
import type { KeyedRequest } from '@floe/authority/request'
import { isEnrolmentToken, proveByToken } from '@floe/authority/token'
import { Fault, FaultError, fault, hostUri, secretFiles } from '@floe/domain'
import { replaceFile } from '@floe/host/replace-file'
import { pause } from '@floe/host/wait'

export type Enrolment = {
  /** FLOE_HOME of this host. */
  home: string
  /** Address of the console. */
  console: string
  token: string
  /** sha256 of the authority that the console must be of. */
  authority: string
  /** Where this agent will answer. */
  agentUrl: string
}

export type Enrolled = { installationId: string; hostId: string; hostName: string }

const ANSWER_MS = 20_000
const DEADLINE_MS = 60_000
const LOOK_MS = 500

/**
 * The only call an agent ever makes: it makes its key, sends the console a certificate request that the token signed, and
 * keeps the certificate it gets, unless that comes from another authority than the one it was given. Safe to run again:
 * the request stays the same until it is answered, since a token is good for one.
 */
export async function enrol(enrolment: Enrolment): Promise<Enrolled> {
  const { home, token, agentUrl } = enrolment
  if (!isEnrolmentToken(token))
    throw fault('usage.token', 'this is not an enrolment token', {
      hint: 'Copy the whole command that "./floe host add NAME" printed.',
    })
  const secrets = join(home, 'secrets')
  mkdirSync(secrets, { recursive: true, mode: 0o700 })
  const requestFile = join(secrets, 'enrolment.pem')
  const { key, request } = await keptRequest(requestFile)
  const proof = proveByToken(token, enrolmentMessage({ request, agentUrl }))
  const answer = await untilSigned(enrolment.console, { request, agentUrl, ...proof })
  const expected = enrolment.authority
    .replace(/^sha256:/i, '')
    .replaceAll(':', '')
    .toLowerCase()
  const { certificate, authority, installationId, hostId, hostName } = answer
  if (fingerprint(authority) !== expected)
    throw fault('enrolment.wrong_authority', 'the console is not the one this command names', {
      detail: `Its authority has the fingerprint ${fingerprint(authority)}, expected was ${expected}.`,
      hint: 'Check the address of the console. Another machine may intercept the connection. Nothing was stored.',
    })
  if (!certificateFits(certificate, { authority, key, uri: hostUri(hostId) }))
    throw fault('enrolment.wrong_certificate', 'the console answered with a certificate that does not fit', {
      hint: 'Nothing was kept. Get a new token with "./floe host add".',
    })
  replaceFile(join(secrets, secretFiles.authority), authority)
  replaceFile(join(secrets, secretFiles.agentIdentity), `${certificate.trimEnd()}\n${key}`)
  rmSync(requestFile, { force: true })
  return { installationId, hostId, hostName }
}

function fingerprint(authority: string): string {
  try {
    return fingerprintOf(authority)
  } catch {
    return 'none'
  }
}

/** The key and request of an enrolment that was interrupted, or fresh ones. */
async function keptRequest(file: string): Promise<KeyedRequest> {
  try {
    const text = readFileSync(file, 'utf8')
    const at = text.indexOf('-----BEGIN CERTIFICATE REQUEST')
    if (at > 0) return { key: text.slice(0, at), request: text.slice(at) }
  } catch {
    // there is none
  }
  // this file is in every agent's bundle, the library of certificates only where it is needed
  const { makeRequest } = await import('@floe/authority/request')
  const made = await makeRequest()
  replaceFile(file, `${made.key}${made.request}`)
  return made
}

async function untilSigned(
  console: string,
  asked: EnrolmentRequest,
): Promise<Extract<EnrolmentAnswer, { state: 'enrolled' }>> {
  const request = EnrolmentRequest.safeParse(asked)
  if (!request.success)
    throw fault('usage.listen', `"${asked.agentUrl}" cannot be an agent’s address`, {
      hint: 'Give it as --listen ADDRESS:PORT.',
    })
  const end = Date.now() + DEADLINE_MS
  for (;;) {
    const answer = await ask(console, request.data)
    if (answer.state === 'enrolled') return answer
    if (Date.now() > end)
      throw fault('enrolment.not_signed', 'the console has not signed the certificate yet', {
        detail: 'Its controller does so; it may not be running.',
        hint: 'Check "./floe status" on the console’s machine, then run the same command again.',
      })
    await pause(LOOK_MS)
  }
}

async function ask(console: string, request: EnrolmentRequest): Promise<EnrolmentAnswer> {
  let status: number
  let body: unknown
  try {
    const response = await fetch(new URL(ENROLMENT_PATH, console), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    status = response.status
    body = await response.json()
  } catch (cause) {
    const why = cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : String(cause)
    throw fault('console.unreachable', `could not reach the console at ${console}`, {
      detail: why,
      hint: 'It must listen where this host can reach it: "./floe up --listen ADDRESS" on its machine.',
      cause,
    })
  }
  if (status === 200) return EnrolmentAnswer.parse(body)
  const refused = Fault.safeParse(body)
  throw refused.success
    ? new FaultError(refused.data)
    : fault('enrolment.refused', `the console answered with status ${status}`)
}
