import {
  closeIncidents,
  endOpenHostUpgrades,
  endOpenOperations,
  inTransaction,
  listRestoredRecords,
  openIncident,
  type RestoredRecord,
  readCluster,
  reopenRestoredRecord,
  requireLease,
  settleRestoredRecord,
  type Transaction,
  takeLease,
  takeReportedPrimary,
} from '@floe/db'
import {
  describeEvidence,
  type Fault,
  type IncidentReport,
  incident,
  incidentKey,
  reportedPrimary,
} from '@floe/domain'
import { runLoop } from './loop'
import type { ControllerParts } from './parts'

const EVERY_MS = 1_000

/** Of an operation that the restored database holds as open. */
export const notContinued: Fault = {
  code: 'operation.not_continued',
  message: 'the operation is not continued: the control database was restored',
  detail: 'What became of it after the backup is not recorded.',
  hint: 'Look at the instance, then ask again for what is still wanted.',
}

/** All of it is one incident where the control database itself is in doubt; else each cluster that is. */
const aboutOf = (record: RestoredRecord) => [record.clusterId ?? 'all'] as const

const keyOf = (record: RestoredRecord) => incidentKey('control-database-restored', ...aboutOf(record))

/**
 * Informs people of what is older than the fleet, and carries out what they decide. One controller at a time does.
 */
export async function settleRestoredRecords(
  parts: Pick<ControllerParts, 'db' | 'log' | 'database' | 'owner'>,
  signal: AbortSignal,
): Promise<void> {
  const { db, log, database, owner } = parts
  await runLoop({ name: 'settle restored records', everyMs: EVERY_MS, signal, log, database }, async () => {
    const records = await listRestoredRecords(db.pool)
    if (records.length === 0) return
    const hold = await takeLease(db.pool, {
      name: 'settle restored records',
      owner,
      leaseMs: 10 * EVERY_MS,
    })
    if (!hold) return
    const underLease = <T>(write: (tx: Transaction) => Promise<T>) =>
      inTransaction(db.pool, async (tx) => {
        await requireLease(tx, hold)
        return write(tx)
      })
    const [all] = records.filter((r) => r.clusterId === null && r.acceptedAs === null)
    const told = all ? [all] : records.filter((r) => r.acceptedAs === null)
    for (const record of told)
      if (await underLease((tx) => openIncident(tx, incidentOf(record, records))))
        log.error('incident.opened', { key: keyOf(record) })
    // clusters first: what is recorded of all of it is settled when that is
    for (const record of records.filter((r) => r.acceptedAs !== null).reverse()) {
      const outcome = await underLease((tx) => carryOut(tx, record))
      log.warn('control_database.accepted', { clusterId: record.clusterId, outcome })
    }
    if (!all) return
    // clusters that are reported with all the rest need no incidents of their own
    const own = records.filter((r) => r !== all).map(keyOf)
    await underLease((tx) => closeIncidents(tx, own, 'It is part of the incident of the control database.'))
  })
}

function incidentOf(record: RestoredRecord, all: readonly RestoredRecord[]): IncidentReport {
  const hint =
    'Find out which is right. "./floe console accept-restored" (or Accept here) takes over who is the primary from what members report, where that is proven; with --as-recorded what is recorded stays. Or restore a newer backup.'
  if (record.clusterId !== null)
    return incident('control-database-restored', aboutOf(record), {
      title: `what is recorded of cluster "${record.clusterName}" is older than the cluster`,
      detail: `${describeEvidence(record.evidence)} No operation on it is begun or goes on.`,
      hint,
      instanceId: record.evidence?.kind === 'newer-primary' ? record.evidence.instanceId : null,
    })
  const clusters = all.filter((r) => r.clusterId !== null)
  return incident('control-database-restored', aboutOf(record), {
    title: 'the control database was restored: the console is read-only',
    detail: [
      `${describeEvidence(record.evidence)} No operation is begun or goes on.`,
      ...clusters.map((r) => `Cluster "${r.clusterName}": ${describeEvidence(r.evidence)}`),
    ].join('\n'),
    hint,
  })
}

/** Carries out a decision; answers what that was. Where it cannot be, a person has to decide again. */
async function carryOut(tx: Transaction, record: RestoredRecord): Promise<string> {
  const settled = async (outcome: string) => {
    const ended = await endOpenOperations(tx, record.clusterId, notContinued)
    if (record.clusterId === null) await endOpenHostUpgrades(tx, notContinued)
    const words = `${outcome}${ended > 0 ? ` Operations that are not continued: ${ended}.` : ''}`
    await settleRestoredRecord(tx, record.recordId, words)
    await closeIncidents(tx, [keyOf(record)], `${record.acceptedByName ?? 'Somebody'} decided. ${words}`)
    return words
  }
  if (record.clusterId === null) return settled('The restored control database is accepted.')
  if (record.acceptedAs === 'recorded') return settled('What is recorded counts.')
  const cluster = await readCluster(tx, record.clusterId)
  if (!cluster) return settled('The cluster is gone.')
  const reported = reportedPrimary(cluster)
  if (!reported.proven) {
    await reopenRestoredRecord(tx, record.recordId, reported.why)
    return `Nothing: ${reported.why}`
  }
  await takeReportedPrimary(tx, cluster.clusterId, reported)
  const name = cluster.members.find((m) => m.instanceId === reported.instanceId)?.name
  return settled(
    `"${name}" is the primary, on timeline ${reported.timeline.timeline}, as its members report.`,
  )
}
