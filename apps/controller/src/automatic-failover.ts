import {
  type AutomaticHistory,
  CONTROLLER_ACTOR,
  type Database,
  giveUpOwnStart,
  type LeaseHold,
  listAutomaticClusters,
  readAutomaticHistory,
  releaseLease,
  requireLease,
  setAutomaticWord,
  takeLease,
} from '@floe/db'
import {
  type AutomaticDecision,
  type AutomaticFailover,
  type ClusterObserved,
  decideFailover,
  FaultError,
  InstanceId,
  judgeCandidates,
  operationRecord,
  READ_ONLY,
  type Watched,
  watch,
} from '@floe/domain'
import type { Log } from '@floe/host/log'
import { OperationConflict, submitOperation } from '@floe/operations/submit'
import { type DatabaseWatch, runLoop } from './loop'
import type { LeaseTimes } from './operation-loop'
import type { Standstills } from './standstills'

const LOOK_EVERY_MS = 500
const LEASE = 'automatic failover'

type Parts = {
  db: Database
  log: Log
  database: DatabaseWatch
  times: LeaseTimes
  owner: string
  standstills: Pick<Standstills, 'now' | 'since'>
}

/** What one controller has seen of automatic clusters since it took the lease and last stood still. */
type Memory = { since: number; token: unknown; clusters: Map<string, Watched> }

/**
 * Lets automatic clusters fail over, and starts their primaries after a crash. One controller at a time looks; it
 * orders the operations that a person would order, so that a second one that wrongly believes it holds the lease can do
 * no more than ask for one that is open already. What it has seen is its own: after a standstill, and with a new lease,
 * silence counts from zero.
 */
export async function failOverAutomatically(parts: Parts, signal: AbortSignal): Promise<void> {
  const { db, log, database, owner, standstills, times } = parts
  let hold: LeaseHold | null = null
  let memory: Memory | null = null
  await runLoop({ name: LEASE, everyMs: LOOK_EVERY_MS, signal, log, database }, async () => {
    hold = (await takeLease(db.pool, { name: LEASE, owner, leaseMs: times.leaseMs })) ?? null
    const since = standstills.since().monotonic
    if (!hold) {
      memory = null
      return
    }
    if (memory === null || memory.since !== since || memory.token !== hold.token)
      memory = { since, token: hold.token, clusters: new Map() }
    const watched = await listAutomaticClusters(db.pool)
    const seen = new Map<string, Watched>()
    for (const { cluster, automatic, inDoubt } of watched) {
      const now = standstills.now().monotonic
      const of = watch(cluster, memory.clusters.get(cluster.clusterId) ?? null, now)
      seen.set(cluster.clusterId, of)
      await lookAt(parts, hold, cluster, { settings: automatic, watched: of, now, inDoubt })
    }
    memory.clusters = seen
  })
  if (hold) await releaseLease(db.pool, hold).catch((error) => database.missed(error))
}

async function lookAt(
  parts: Parts,
  hold: LeaseHold,
  cluster: ClusterObserved,
  seen: { settings: AutomaticFailover; watched: Watched; now: number; inDoubt: boolean },
): Promise<void> {
  const { db, log } = parts
  const { clusterId } = cluster
  const outageMs = seen.now - seen.watched.primarySeenAt
  // as long as all is well nothing else is asked
  const well = decideFailover(cluster, { ...seen, ...nothingDone, candidate: null }).do === 'nothing'
  const history = well ? nothingKnown : await readAutomaticHistory(db.pool, clusterId, outageMs)
  const [best] = well ? [] : judgeCandidates(cluster, 'failover')
  const { open } = history
  const decision = decideFailover(cluster, {
    ...seen,
    open: open && {
      title: operationRecord(open.kind).title,
      own: open.own && open.kind === 'start-instance',
    },
    sinceLastMs: history.sinceLastMs,
    tries: history.tries,
    candidate: best ?? null,
  })
  await requireLease(db.pool, hold)
  const text = 'why' in decision ? [decision.why].flat().join(' ') : null
  if (text === null && cluster.automaticWord == null) return
  const word = text === null || decision.do === 'nothing' ? null : { kind: decision.do, text, at: Date.now() }
  const said = kindOf(cluster) !== decision.do || decision.do === 'start' || decision.do === 'failover'
  await setAutomaticWord(db.pool, clusterId, word)
  if (said)
    log.warn('cluster.automatic', { clusterId, cluster: cluster.name, decision: decision.do, why: text })
  // one that takes too long is given up; the next look finds it ended
  if (open?.own && open.kind === 'start-instance' && isDue(decision))
    await giveUpOwnStart(db.pool, open.operationId)
  else await carryOut(parts, cluster, decision)
}

const nothingDone = { open: null, sinceLastMs: null, tries: { start: 0, failover: 0 } }
const nothingKnown: AutomaticHistory = nothingDone
const kindOf = ({ automaticWord }: ClusterObserved) => automaticWord?.kind ?? 'nothing'

/** The time in which the primary could come back without a failover is over. */
const isDue = (decision: AutomaticDecision) => decision.do === 'wait' && decision.due === true

async function carryOut(
  { db, log }: Parts,
  cluster: ClusterObserved,
  decision: AutomaticDecision,
): Promise<void> {
  const { clusterId, primaryInstanceId: instanceId } = cluster
  try {
    if (decision.do === 'start')
      await submitOperation(db, { kind: 'start-instance', input: { instanceId }, actor: CONTROLLER_ACTOR })
    if (decision.do === 'failover')
      await submitOperation(db, {
        kind: 'failover-cluster',
        input: {
          clusterId,
          instanceId: InstanceId.parse(decision.candidate),
          choose: true,
          acceptLoss: null,
          unreachableHost: decision.unreachableHost,
          alsoUnreachable: [],
          because: decision.why,
        },
        actor: CONTROLLER_ACTOR,
      })
  } catch (error) {
    const told =
      error instanceof OperationConflict || (error instanceof FaultError && error.fault.code === READ_ONLY)
    if (!told) throw error
    log.info('cluster.automatic_waits', { clusterId, reason: error.message })
  }
}
