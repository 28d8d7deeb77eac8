import { type Database, insertAuditEvent } from '@floe/db'
import type { DenialRows } from '../denial-rows'
import { auditAddress, peerAddress } from '../peer-address'
import { unstorableText } from '../text'
import type { KnownDevices } from './known-device'
import { LateChecks } from './late-checks'
import { SignInLimit } from './sign-in-limit'

export const AUTH_PATH = '/api/auth'
const SIGN_IN = '/sign-in/email'
const SIGN_OUT = '/sign-out'

/** What better-auth offers over HTTP and Floe uses. The rest is closed, also what a later version adds. */
export const openPaths: readonly string[] = [SIGN_IN, SIGN_OUT]

type Person = { id: string; name: string }
type Behind = {
  handler(request: Request): Promise<Response>
  findPerson(headers: Headers): Promise<Person | null>
  database: Pick<Database, 'pool'>
  denialRows: DenialRows
  devices: KnownDevices
  /** Tests give one of another pace. */
  late?: LateChecks | undefined
}

/**
 * The one way in to better-auth's endpoints: only those that Floe uses, sign-ins within their limits (beyond them late and
 * few: LateChecks), and no beginning or end of a session without its audit row.
 */
export function createFrontDoor({
  handler,
  findPerson,
  database,
  denialRows,
  devices,
  late = new LateChecks(),
}: Behind) {
  const limit = new SignInLimit()

  async function signIn(request: Request): Promise<Response> {
    const { headers } = request
    const body = await readBody(request)
    const email = typeof body?.email === 'string' ? body.email : ''
    const wrong = body === null ? 'body' : unstorableText(body)
    if (wrong !== null) {
      await noteFailure(email, headers, 'input.invalid')
      return refusal(400, 'input.invalid', `invalid input: ${wrong} is not text that can be stored`)
    }
    const device = devices.deviceOf(headers, email)
    const attempt = { email: email.slice(0, 200), peer: peerAddress(headers), device }
    const waitMs = limit.waitMs(attempt)
    const check = () => askPassphrase(request, email, body?.password)
    let response: Response
    let takeBack = () => {}
    if (waitMs > 0) {
      // it counts for nothing: it would only keep others waiting for longer
      const answered = await late.take(
        device ? `device ${device}` : `peer ${attempt.peer}`,
        check,
        request.signal,
      )
      if (answered === null) return tooManyAttempts(waitMs)
      response = answered
    } else {
      takeBack = limit.begin(attempt)
      try {
        response = await check()
      } catch (error) {
        takeBack()
        throw error
      }
    }
    const answer = (await response.json().catch(() => ({}))) as { code?: string; user?: Person }
    // anything else was refused before a passphrase was looked at: another site's page, a form that is none
    const guessedWrong = response.status === 401 && answer.code === 'INVALID_EMAIL_OR_PASSWORD'
    if (!guessedWrong) takeBack()
    if (!response.ok || !answer.user) {
      await noteFailure(email, headers, answer.code ?? String(response.status))
      return Response.json(answer, { status: response.status, headers: keptHeaders(response) })
    }
    limit.succeeded(attempt)
    const { id, name } = answer.user
    await insertAuditEvent(database.pool, {
      actor: { id, name },
      action: 'session.sign-in',
      outcome: 'allowed',
      objectKind: 'user',
      objectId: id,
      ipAddress: auditAddress(headers),
    })
    const kept = keptHeaders(response)
    kept.append('set-cookie', devices.cookie(email, device ?? undefined))
    // the cookie is the session; its token has no business in a page's memory
    return Response.json({ user: { id, name } }, { headers: kept })
  }

  function askPassphrase({ url, headers }: Request, email: string, password: unknown): Promise<Response> {
    const passed = new Headers(headers)
    passed.delete('content-length')
    return handler(
      new Request(url, { method: 'POST', headers: passed, body: JSON.stringify({ email, password }) }),
    )
  }

  async function signOut(request: Request): Promise<Response> {
    const person = await findPerson(request.headers)
    const response = await handler(request)
    if (response.ok && person)
      await insertAuditEvent(database.pool, {
        actor: person,
        action: 'session.sign-out',
        outcome: 'allowed',
        objectKind: 'user',
        objectId: person.id,
        ipAddress: auditAddress(request.headers),
      })
    return response
  }

  async function noteFailure(email: string, headers: Headers, code: string): Promise<void> {
    const name = unstorableText(email) === null ? email.slice(0, 200) : ''
    await denialRows.write('sign-in', {
      actor: { id: 'anonymous', name },
      action: 'session.sign-in',
      outcome: 'denied',
      objectKind: 'user',
      detail: { code },
      ipAddress: auditAddress(headers),
    })
  }

  return async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url)
    if (request.method === 'POST' && pathname === `${AUTH_PATH}${SIGN_IN}`) return signIn(request)
    if (request.method === 'POST' && pathname === `${AUTH_PATH}${SIGN_OUT}`) return signOut(request)
    return refusal(404, 'request.not_found', 'nothing is here')
  }
}

function tooManyAttempts(waitMs: number): Response {
  const seconds = Math.ceil(waitMs / 1_000)
  return refusal(429, 'session.too_many_attempts', `too many failed attempts; try again in ${seconds} s`, {
    'retry-after': String(seconds),
  })
}

async function readBody(request: Request): Promise<Record<string, unknown> | null> {
  const body: unknown = await request.json().catch(() => null)
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : null
}

/** Headers of an answer that go on with another body. */
function keptHeaders(response: Response): Headers {
  const kept = new Headers(response.headers)
  kept.delete('content-length')
  kept.delete('content-type')
  return kept
}

const refusal = (status: number, code: string, message: string, headers: Record<string, string> = {}) =>
  Response.json({ code, message, fault: { code, message } }, { status, headers })
