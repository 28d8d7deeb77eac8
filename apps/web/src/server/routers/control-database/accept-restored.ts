import {
  acceptRestoredRecords,
  insertAuditEvent,
  inTransaction,
  listRestoredRecords,
  type Queryable,
  type RestoredRecord,
  readCluster,
} from '@floe/db'
import { describeEvidence, fault, reportedPrimary } from '@floe/domain'
import { adminProcedure } from '../../procedures'
import { AcceptedRestored, AcceptRestoredInput } from './control-database.types'

/**
 * Decides on a control database, or a cluster's record, that is older than what it is about; operations on it go on after
 * that. `reported` takes over who is the primary from what members report, and is refused where that is not proven
 * (`restored.not_proven`). Throws `restored.not_found` where nothing is in doubt.
 */
export const acceptRestored = adminProcedure
  .input(AcceptRestoredInput)
  .output(AcceptedRestored)
  .mutation(({ ctx, input }) =>
    inTransaction(ctx.ports.database.pool, async (tx) => {
      const records = (await listRestoredRecords(tx)).filter(
        (r) =>
          r.acceptedAs === null &&
          (input.cluster === undefined || [r.clusterName, r.clusterId].includes(input.cluster)),
      )
      if (records.length === 0)
        throw fault(
          'restored.not_found',
          input.cluster === undefined ? 'nothing is in doubt' : `cluster "${input.cluster}" is not in doubt`,
          { hint: 'The open incidents say what is: "./floe incident list --state open".' },
        )
      if (input.as === 'reported') await requireProof(tx, records)
      const ids = await acceptRestoredRecords(
        tx,
        records.map((r) => r.recordId),
        input.as,
        ctx.actor,
      )
      const accepted = records
        .filter((r) => ids.includes(r.recordId))
        .map((r) => ({ clusterName: r.clusterName, evidence: describeEvidence(r.evidence) }))
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'control_database.accept_restored',
        outcome: 'allowed',
        objectKind: 'control_database',
        objectId: input.cluster ?? 'all',
        detail: { as: input.as, accepted },
        ipAddress: ctx.ipAddress,
      })
      return { accepted }
    }),
  )

/** Refuses what the controller could not carry out. */
async function requireProof(on: Queryable, records: readonly RestoredRecord[]): Promise<void> {
  for (const { clusterId, clusterName } of records) {
    const cluster = clusterId === null ? undefined : await readCluster(on, clusterId)
    const reported = cluster && reportedPrimary(cluster)
    if (reported && !reported.proven)
      throw fault(
        'restored.not_proven',
        `who is the primary of cluster "${clusterName}" is not proven by what its members report`,
        {
          detail: reported.why,
          hint: 'Bring its hosts back and try again. If you know that what is recorded is right, accept it with --as-recorded.',
        },
      )
  }
}
