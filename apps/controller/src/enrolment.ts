import { inspectCertificate, issueHostCertificate } from '@floe/authority'
import { completeEnrolment, failEnrolment, inTransaction, sqlError, takeUnsignedEnrolment } from '@floe/db'
import { FaultError, fault } from '@floe/domain'
import { type LoopOptions, runLoop, type Wake } from './loop'
import type { ControllerParts } from './parts'
import { addressesOf } from './signing'

/** Signs the requests of hosts that came with a token: one transaction a request, by whichever controller gets it. */
export async function signEnrolments(
  parts: Pick<ControllerParts, 'db' | 'log' | 'database' | 'signing'> & { wake: Wake },
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
}: Pick<ControllerParts, 'db' | 'log' | 'signing'>): Promise<boolean> {
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
