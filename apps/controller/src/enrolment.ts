import { type Authority, inspectCertificate, issueHostCertificate } from '@floe/authority'
import { completeEnrolment, failEnrolment, inTransaction, sqlError, takeUnsignedEnrolment } from '@floe/db'
import { FaultError, fault, LOOPBACK } from '@floe/domain'
import { type LoopOptions, runLoop, type Wake } from './loop'
import type { LaneParts } from './observe/host-lane'

/** What hosts' certificates are signed with. */
export type Signing = { authority: Authority; lifetimeMs?: number | undefined }

/** The names a certificate serves: where the agent is dialled, and its own machine. */
export const addressesOf = (agentUrl: string) => [
  new URL(agentUrl).hostname.replace(/^\[|\]$/g, ''),
  LOOPBACK,
  'localhost',
]

/** Signs the requests of hosts that came with a token: one transaction a request, by whichever controller gets it. */
export async function signEnrolments(
  parts: Pick<LaneParts, 'db' | 'log' | 'database'> & { signing: Signing; wake: Wake },
  signal: AbortSignal,
): Promise<void> {
  const { log, database, wake } = parts
  const loop: LoopOptions = { name: 'sign enrolments', everyMs: 5_000, signal, log, database, wake }
  await runLoop(loop, async () => {
    while (!signal.aborted && (await signOne(parts)));
  })
}

/** True when there was one to sign, whatever became of it. */
async function signOne({
  db,
  log,
  signing,
}: Pick<LaneParts, 'db' | 'log'> & { signing: Signing }): Promise<boolean> {
  let enrolmentId: string | undefined
  try {
    return await inTransaction(db.pool, async (tx) => {
      const enrolment = await takeUnsignedEnrolment(tx)
      if (!enrolment) return false
      enrolmentId = enrolment.enrolmentId
      const { hostId, name, request, agentUrl } = enrolment
      const pem = await issueHostCertificate(
        signing.authority,
        { request, hostId, addresses: addressesOf(agentUrl) },
        { lifetimeMs: signing.lifetimeMs },
      )
      await completeEnrolment(tx, enrolment, { pem, ...inspectCertificate(pem) })
      log.info('host.enrolled', { hostId, name, agentUrl })
      return true
    })
  } catch (error) {
    if (enrolmentId === undefined) throw error
    const why =
      sqlError(error)?.constraint === 'host_one_per_name'
        ? fault('host.name_taken', 'another host took this name meanwhile')
        : error
    // what is wrong with the request stays wrong; anything else is tried again
    if (!(why instanceof FaultError)) throw error
    await failEnrolment(db.pool, enrolmentId, why.fault)
    log.warn('host.not_enrolled', { enrolmentId, fault: why.fault })
    return true
  }
}
