import { type LeaseHold, LeaseLostError, listWatchedClusters, releaseLease, takeLease } from '@floe/db'
import { incidentKindOf } from '@floe/domain'
import { runLoop } from '../loop'
import type { ControllerParts } from '../parts'
import { deriveClusterIncidents } from './derive-cluster-incidents'
import { IncidentBook } from './incident-book'

const LOOK_EVERY_MS = 1_000
/** After a standstill, and at its begin, a controller does not know yet what the reports of hosts are. */
const LOOK_AGAIN_MS = 5_000

/**
 * Looks at what members of clusters report together: no host alone can know that nobody is the primary, or that a standby
 * follows nobody. One controller does so at a time; incidents of hosts are their lanes'.
 */
export async function watchClusters(
  parts: Pick<ControllerParts, 'db' | 'log' | 'database' | 'owner' | 'standstills' | 'times'> & {
    /** A standby that was sent nothing for this long hears nobody. */
    unheardMs?: number | undefined
  },
  signal: AbortSignal,
): Promise<void> {
  const { db, log, database, owner, standstills, times } = parts
  const lease: { hold: LeaseHold | null } = { hold: null }
  const book = new IncidentBook(db, 'clusters', log, {
    hold: () => {
      if (!lease.hold) throw new LeaseLostError('watch clusters')
      return lease.hold
    },
  })
  await runLoop({ name: 'watch clusters', everyMs: LOOK_EVERY_MS, signal, log, database }, async () => {
    const before = lease.hold?.token
    lease.hold = (await takeLease(db.pool, { name: 'watch clusters', owner, leaseMs: times.leaseMs })) ?? null
    const blind = standstills.now().monotonic - standstills.since().monotonic < LOOK_AGAIN_MS
    if (blind || lease.hold?.token !== before) book.startOver()
    if (!lease.hold || blind) return
    const watched = await listWatchedClusters(db.pool)
    await book.refresh()
    const open = await book.open()
    const found = watched.flatMap(({ cluster, busy, busyWithPrimary, inDoubt }) =>
      deriveClusterIncidents(cluster, { inDoubt, unheardMs: parts.unheardMs }).map((incident) => ({
        incident,
        busy,
        busyWithPrimary,
      })),
    )
    // what operations bring about by their nature counts from their end on; that nobody is the primary from its begin on
    const wanted = found.filter(
      ({ incident: { key }, busy }) =>
        !(busy && incidentKindOf(key)?.duringOperations === 'not opened' && !open.has(key)),
    )
    const held = new Set<string>(wanted.filter((w) => w.busyWithPrimary).map((w) => w.incident.key))
    // of standbys nothing is known meanwhile, so nothing is over
    const inDoubt = new Set<string>(
      watched.filter((w) => w.inDoubt).flatMap(({ cluster }) => cluster.members.map((m) => m.instanceId)),
    )
    const judged = (key: string) => {
      const kind = incidentKindOf(key)
      return !(kind?.whileInDoubt === 'stays open' && kind.ids.some((id) => inDoubt.has(id)))
    }
    await book.settle(
      wanted.map(({ incident }) => incident),
      judged,
      (key) => held.has(key),
    )
  })
  if (lease.hold) await releaseLease(db.pool, lease.hold).catch((error) => database.missed(error))
}
