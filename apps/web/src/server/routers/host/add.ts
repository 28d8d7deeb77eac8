import { randomUUID } from 'node:crypto'
import { fingerprintOf } from '@floe/authority/inspect'
import { enrolmentTokenHash, makeEnrolmentToken } from '@floe/authority/token'
import { insertAuditEvent, insertEnrolment, inTransaction } from '@floe/db'
import { fault, HostId } from '@floe/domain'
import { adminProcedure } from '../../procedures'
import { HostAdd, HostAddInput } from './host.types'

/**
 * Gives out a one-time token for a host, good for so many minutes, with the command to run there. The token leaves only with
 * this answer. Throws `host.name_taken`, `host.not_found` (again) or `host.own`.
 */
export const add = adminProcedure
  .input(HostAddInput)
  .output(HostAdd)
  .mutation(async ({ ctx, input: { name, again, minutes } }) => {
    const { database, files } = ctx.ports
    const { installation } = files
    const token = makeEnrolmentToken()
    const enrolmentId = randomUUID()
    const made = await inTransaction(database.pool, async (tx) => {
      const enrolment = await insertEnrolment(tx, {
        enrolmentId,
        hostId: randomUUID(),
        name,
        again,
        tokenHash: enrolmentTokenHash(token),
        actor: ctx.actor,
        minutes,
      })
      if (enrolment.hostId === installation.hostId)
        throw fault('host.own', 'this is the console’s own machine', {
          hint: 'Its agent needs no token: "./floe up" there renews its certificate.',
        })
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'host.add',
        outcome: 'allowed',
        objectKind: 'host',
        objectId: enrolment.hostId,
        detail: { name, again, minutes, enrolmentId },
        ipAddress: ctx.ipAddress,
      })
      return enrolment
    })
    const authority = fingerprintOf(files.authority)
    return {
      enrolmentId,
      hostId: HostId.parse(made.hostId),
      name,
      token,
      expiresAt: made.expiresAt.getTime(),
      authority,
      command: `echo ${token} | ./floe agent enrol --console ${installation.webUrl} --authority sha256:${authority} --token -`,
      onlyLocal: /^(127\.|localhost$|\[?::1)/.test(new URL(installation.webUrl).hostname),
    }
  })
