import { EnrolmentAnswer, EnrolmentRequest, enrolmentMessage } from '@floe/agent-contract'
import { tokenHashOfProof } from '@floe/authority/token'
import { insertAuditEvent, inTransaction, type TakenEnrolment, takeEnrolment } from '@floe/db'
import { type Fault, FaultError, fault, HostId, toFault } from '@floe/domain'
import { httpCodeOf } from './faults'
import { log } from './log'
import { auditAddress } from './peer-address'
import type { Ports } from './ports'

const BODY_CHARS_MAX = 16_384

/**
 * Takes the certificate request of a host that has a token, and answers with its certificate once the controller has signed
 * it: the only thing an agent ever asks. Nobody is signed in here; the token's signature says who may.
 */
export async function enrol(ports: Ports, request: Request): Promise<Response> {
  try {
    return Response.json(await answer(ports, request), { headers: { 'cache-control': 'no-store' } })
  } catch (error) {
    const known = error instanceof FaultError ? error.fault : null
    const away = httpCodeOf(error) === 'SERVICE_UNAVAILABLE'
    if (!known && !away) log.error('enrolment.broke', { err: error })
    const said: Fault =
      known ??
      (away
        ? toFault(error)
        : { code: 'internal', message: 'unexpected error', hint: 'The console’s log says more.' })
    return Response.json(said, { status: away ? 503 : known ? 403 : 500 })
  }
}

async function answer(ports: Ports, request: Request): Promise<EnrolmentAnswer> {
  const asked = EnrolmentRequest.safeParse(await body(request))
  if (!asked.success)
    throw fault('enrolment.invalid', 'this is not an enrolment request', {
      detail: asked.error.issues.map((i) => `${i.path.join('.') || 'body'}: ${i.message}`).join('; '),
    })
  const { request: certificateRequest, agentUrl } = asked.data
  const tokenHash = tokenHashOfProof(asked.data, enrolmentMessage(asked.data))
  if (tokenHash === null)
    throw fault('enrolment.bad_signature', 'the request was not signed by a token', {
      hint: 'Run the command that "./floe host add" printed.',
    })
  const ipAddress = auditAddress(request.headers)
  const taken = await take(ports, { tokenHash, request: certificateRequest, agentUrl, ipAddress })
  if (taken.certificate === null) return { state: 'pending' }
  const { files } = ports
  return EnrolmentAnswer.parse({
    state: 'enrolled',
    installationId: files.installation.installationId,
    hostId: HostId.parse(taken.hostId),
    hostName: taken.name,
    certificate: taken.certificate,
    authority: files.authority,
  })
}

/** Uses the token up and writes the audit row in one transaction; a refusal of somebody who has a token leaves a row too. */
async function take(
  ports: Ports,
  asked: { tokenHash: string; request: string; agentUrl: string; ipAddress: string | null },
): Promise<TakenEnrolment> {
  const { agentUrl, ipAddress } = asked
  const event = { action: 'host.enrol', objectKind: 'host', ipAddress }
  try {
    return await inTransaction(ports.database.pool, async (tx) => {
      const taken = await takeEnrolment(tx, asked)
      if (taken.first)
        await insertAuditEvent(tx, {
          ...event,
          actor: { id: `enrolment:${taken.enrolmentId}`, name: `token of ${taken.actor.name}` },
          outcome: 'allowed',
          objectId: taken.hostId,
          detail: { name: taken.name, agentUrl },
        })
      return taken
    })
  } catch (error) {
    const code = error instanceof FaultError ? error.fault.code : ''
    // a row only for a token that was really given out, so that nobody fills the database from outside
    if (/^enrolment\.token_(used|expired|withdrawn)$/.test(code))
      await insertAuditEvent(ports.database.pool, {
        ...event,
        actor: { id: 'anonymous', name: 'anonymous' },
        outcome: 'denied',
        detail: { code, agentUrl },
      }).catch((err: unknown) => log.error('audit.failed', { action: event.action, err }))
    throw error
  }
}

async function body(request: Request): Promise<unknown> {
  // how much is taken in at all is bounded by the server (limits.mjs)
  const text = await request.text()
  if (text.length > BODY_CHARS_MAX) throw fault('enrolment.invalid', 'the request is too long')
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
