import {
  AutomaticFailover,
  AutomaticWord,
  automaticPageRepair,
  ClusterHoldings,
  type ClusterMember,
  type ClusterObserved,
  CommitMode,
  ConnectionTarget,
  FlashbackLog,
  fault,
  HOST_OFFLINE_MS,
  holdingsAsReported,
  hostState,
  InstanceEngine,
  type InstanceId,
  MemberLogins,
  type OperationKind,
  type OperationState,
  operationKindsThat,
  PageRepair,
  PrimaryKnown,
  type PrimaryReported,
  type PromotedAs,
  Protection,
  RemoteAccess,
  ReplicationObserved,
  SharedServerSeen,
  SynchronousStandbys,
  unknownHoldings,
  withPrimary,
} from '@floe/domain'
import type pg from 'pg'
import { z } from 'zod'
import { inTransaction, type Queryable, type Transaction } from '../database'
import type { Actor } from './audit'
import { isOpen } from './kinds-that-read'
import { type LeaseHold, requireLease } from './lease'

const Fenced = z.object({ at: z.number(), reason: z.string() })

const clusterQuery = `
  SELECT c.id AS "clusterId", c.name, c.control, c."primaryInstanceId", c.synchronous, c."commitMode", c."pageRepair", c.holdings,
         c.automatic, c."automaticWord",
         coalesce((SELECT json_agg(json_build_object(
             'instanceId', i.id, 'name', i.name, 'hostId', h.id, 'hostName', h.name, 'powerSupply', h."powerSupply", 'memberRole', i."memberRole",
             'intent', i.intent, 'whyNotStreaming', left(i.observed->>'whyNotStreaming', 1000),
             'state', i.state, 'because', i.because, 'role', i.role, 'engineVersion', i."engineVersion",
             'systemIdentifier', i."systemIdentifier",
             'ageMs', (extract(epoch FROM clock_timestamp() - i."observedAt") * 1000)::float8,
             'hostAgeMs', (extract(epoch FROM clock_timestamp() - h."observedAt") * 1000)::float8,
             'hostRevoked', h."revokedAt" IS NOT NULL,
             'timeline', (i.observed->>'timeline')::int, 'connection', i.observed->'connection',
             'replication', i.observed->'replication', 'fenced', i.observed->'fenced',
             'protection', i.observed->'protection', 'flashback', i.observed->'flashback', 'logins', i.observed->'logins',
             'sharedServer', i.observed->'sharedServer', 'engine', i.observed->'engine',
             'remoteAccess', i.observed->'remoteAccess', 'primaryKnown', i.observed->'primaryKnown')
             ORDER BY i.id <> c."primaryInstanceId", i.name)
           FROM instance i JOIN host h ON h.id = i."hostId"
          WHERE i."clusterId" = c.id AND i."deletedAt" IS NULL), '[]') AS members
    FROM cluster c`

type MemberRow = Omit<
  ClusterMember,
  | 'hostState'
  | 'connection'
  | 'replication'
  | 'fenced'
  | 'protection'
  | 'flashback'
  | 'sharedServer'
  | 'logins'
  | 'remoteAccess'
  | 'primaryKnown'
  | 'engine'
> & {
  hostAgeMs: number | null
  hostRevoked: boolean
  connection: unknown
  replication: unknown
  fenced: unknown
  protection: unknown
  flashback: unknown
  sharedServer: unknown
  logins: unknown
  remoteAccess: unknown
  primaryKnown: unknown
  engine: unknown
}
type ClusterRow = Omit<
  ClusterObserved,
  'synchronous' | 'commitMode' | 'pageRepair' | 'holdings' | 'automatic' | 'automaticWord' | 'members'
> & {
  holdings: unknown
  automatic: unknown
  automaticWord: unknown
  synchronous: unknown
  pageRepair: unknown
  commitMode: unknown
  members: MemberRow[]
}

/** What was stored by an agent of another version, or never, is null and not an error. */
const known = <T>(schema: z.ZodType<T>, value: unknown): T | null => {
  const parsed = schema.safeParse(value)
  return parsed.success ? parsed.data : null
}

function clusterMember({ hostAgeMs, hostRevoked, ...row }: MemberRow): ClusterMember {
  const tooOld = row.ageMs === null || row.ageMs >= HOST_OFFLINE_MS || hostRevoked
  return {
    ...row,
    hostState: hostState({ ageMs: hostAgeMs, revoked: hostRevoked }),
    state: tooOld ? 'unknown' : row.state,
    connection: known(ConnectionTarget, row.connection),
    replication: known(ReplicationObserved, row.replication),
    fenced: known(Fenced, row.fenced),
    protection: known(Protection, row.protection),
    flashback: known(FlashbackLog, row.flashback),
    sharedServer: known(SharedServerSeen, row.sharedServer),
    logins: known(MemberLogins, row.logins),
    remoteAccess: known(RemoteAccess, row.remoteAccess),
    primaryKnown: known(PrimaryKnown, row.primaryKnown),
    engine: known(InstanceEngine, row.engine),
  }
}

const clusterObserved = (row: ClusterRow): ClusterObserved => ({
  ...row,
  synchronous: known(SynchronousStandbys, row.synchronous),
  commitMode: CommitMode.parse(row.commitMode),
  pageRepair: known(PageRepair, row.pageRepair) ?? automaticPageRepair,
  holdings: known(ClusterHoldings, row.holdings) ?? unknownHoldings(),
  automatic: known(AutomaticFailover, row.automatic),
  automaticWord: known(AutomaticWord, row.automaticWord),
  members: row.members.map(clusterMember),
})

/** Clusters that are not deleted, by name, each with its members as last observed, the primary first. */
export async function listClusters(on: Queryable): Promise<ClusterObserved[]> {
  const { rows } = await on.query<ClusterRow>(`${clusterQuery} WHERE c."deletedAt" IS NULL ORDER BY c.name`)
  return rows.map(clusterObserved)
}

/** The same of clusters that have a member on a host. */
export async function listClustersOfHost(on: Queryable, hostId: string): Promise<ClusterObserved[]> {
  const { rows } = await on.query<ClusterRow>(
    `${clusterQuery} WHERE c."deletedAt" IS NULL
        AND EXISTS (SELECT FROM instance i WHERE i."clusterId" = c.id AND i."hostId" = $1 AND i."deletedAt" IS NULL)
      ORDER BY c.name`,
    [hostId],
  )
  return rows.map(clusterObserved)
}

/**
 * The same of clusters with standbys, each with whether an operation is at work on it, and on what its primary runs as; and
 * whether what is recorded of it is in doubt, because the control database was restored.
 */
export async function listWatchedClusters(
  on: Queryable,
): Promise<{ cluster: ClusterObserved; busy: boolean; busyWithPrimary: boolean; inDoubt: boolean }[]> {
  const { rows } = await on.query<ClusterRow>(
    `${clusterQuery} WHERE c."deletedAt" IS NULL
        AND (SELECT count(*) FROM instance i WHERE i."clusterId" = c.id AND i."deletedAt" IS NULL) > 1`,
  )
  const { rows: busy } = await on.query<{ clusterId: string; withPrimary: boolean }>(
    `SELECT "clusterId", bool_or(kind <> ALL ($1)) AS "withPrimary" FROM operation
      WHERE ${isOpen()} AND "clusterId" IS NOT NULL GROUP BY "clusterId"`,
    [leavePrimaryAlone],
  )
  const { rows: doubts } = await on.query<{ clusterId: string | null }>(
    'SELECT "clusterId" FROM restored_record WHERE "settledAt" IS NULL',
  )
  return rows.map((row) => {
    const at = busy.find((b) => b.clusterId === row.clusterId)
    return {
      cluster: clusterObserved(row),
      inDoubt: doubts.some((d) => d.clusterId === null || d.clusterId === row.clusterId),
      busy: at !== undefined,
      busyWithPrimary: at?.withPrimary === true,
    }
  })
}

/** Clusters that fail over by themselves, each with how, and whether what is recorded of it is in doubt. */
export async function listAutomaticClusters(
  on: Queryable,
): Promise<{ cluster: ClusterObserved; automatic: AutomaticFailover; inDoubt: boolean }[]> {
  const { rows } = await on.query<ClusterRow & { inDoubt: boolean }>(
    `SELECT * FROM (${clusterQuery} WHERE c."deletedAt" IS NULL AND c.automatic IS NOT NULL) AS c,
       LATERAL (SELECT EXISTS (SELECT FROM restored_record r
                                WHERE r."settledAt" IS NULL
                                  AND (r."clusterId" IS NULL OR r."clusterId" = c."clusterId")) AS "inDoubt") AS d`,
  )
  return rows.flatMap(({ inDoubt, ...row }) => {
    const cluster = clusterObserved(row)
    // what only a later version wrote is not acted by
    return cluster.automatic ? [{ cluster, automatic: cluster.automatic, inDoubt }] : []
  })
}

/** Operations that may take hours, and by which no primary is ever away. */
const leavePrimaryAlone = operationKindsThat((record) => record.leavesPrimaryAlone === true)

/** A cluster by its id, undefined when there is none or it is deleted. */
export async function readCluster(on: Queryable, clusterId: string): Promise<ClusterObserved | undefined> {
  const { rows } = await on.query<ClusterRow>(`${clusterQuery} WHERE c.id = $1 AND c."deletedAt" IS NULL`, [
    clusterId,
  ])
  return rows[0] && clusterObserved(rows[0])
}

/** The cluster an instance belongs to, undefined when there is no such instance. */
export async function readClusterOf(on: Queryable, instanceId: string): Promise<ClusterObserved | undefined> {
  const { rows } = await on.query<ClusterRow>(
    `${clusterQuery} WHERE c.id = (SELECT "clusterId" FROM instance WHERE id = $1)`,
    [instanceId],
  )
  return rows[0] && clusterObserved(rows[0])
}

/** The cluster of this name, or the one that has a member of this name. */
export async function findCluster(on: Queryable, name: string): Promise<ClusterObserved | undefined> {
  const { rows } = await on.query<ClusterRow>(
    `${clusterQuery}
      WHERE c."deletedAt" IS NULL
        AND (c.name = $1 OR EXISTS (SELECT 1 FROM instance i
              WHERE i."clusterId" = c.id AND i.name = $1 AND i."deletedAt" IS NULL))
      ORDER BY c.name <> $1 LIMIT 1`,
    [name],
  )
  return rows[0] && clusterObserved(rows[0])
}

/**
 * Whether the primary of a cluster is protected from deletion. It stays so to the end of the transaction that asks, which may
 * order a deletion.
 */
export async function readDeletionProtected(tx: Transaction, clusterId: string): Promise<boolean> {
  const { rows } = await tx.query<{ deletionProtected: boolean }>(
    'SELECT "deletionProtected" FROM cluster WHERE id = $1 FOR NO KEY UPDATE',
    [clusterId],
  )
  return rows[0]?.deletionProtected ?? false
}

/**
 * Protects the primary of a cluster from deletion, or takes that back. Answers what was before. Throws
 * `cluster.being_deleted` where its deletion is ordered already.
 */
export async function setDeletionProtected(
  tx: Transaction,
  { clusterId, name }: { clusterId: string; name: string },
  deletionProtected: boolean,
): Promise<{ before: boolean }> {
  const before = await readDeletionProtected(tx, clusterId)
  const { rows } = await tx.query<{ deleting: boolean }>(
    `SELECT EXISTS (SELECT FROM operation o WHERE o."clusterId" = $1 AND o.kind = 'delete-instance' AND ${isOpen('o.')})
         OR EXISTS (SELECT FROM cluster c WHERE c.id = $1 AND c."deletedAt" IS NOT NULL) AS deleting`,
    [clusterId],
  )
  if (rows[0]?.deleting)
    throw fault('cluster.being_deleted', `the deletion of cluster "${name}" has been ordered`, {
      hint: 'Cancel that operation if it has not begun.',
    })
  await tx.query('UPDATE cluster SET "deletionProtected" = $2 WHERE id = $1', [clusterId, deletionProtected])
  return { before }
}

/** Makes the row of a standby; throws a unique violation where the name is taken. */
export async function insertStandby(
  on: Queryable,
  standby: { instanceId: string; name: string; hostId: string; clusterId: string },
): Promise<void> {
  await on.query(
    `INSERT INTO instance (id, name, "hostId", intent, "clusterId", "memberRole")
     VALUES ($1, $2, $3, 'running', $4, 'standby')`,
    [standby.instanceId, standby.name, standby.hostId, standby.clusterId],
  )
}

/** Inserts the row of a standby again whose creation was undone; throws a unique violation where the name is taken. */
export async function reviveStandby(on: Queryable, instanceId: string): Promise<void> {
  await on.query(
    `UPDATE instance SET "deletedAt" = NULL, intent = 'running' WHERE id = $1 AND "deletedAt" IS NOT NULL`,
    [instanceId],
  )
}

/**
 * Makes another member the primary; in the transaction of the step that promoted it. The former one is from then on a
 * standby (it follows) or fenced (it must not accept a write); `fence` where that is still to be done on its host, with the
 * newest timeline that it may be on.
 */
export async function moveClusterPrimary(
  tx: Transaction,
  moved: {
    clusterId: string
    primary: string
    former: {
      instanceId: string
      memberRole: 'standby' | 'fenced'
      fence: { timeline: number } | null
    } | null
    /** Others that may accept writes: to be fenced as soon as their hosts answer. */
    fenceOrdered?: { instanceIds: readonly string[]; timeline: number }
    synchronous: SynchronousStandbys | null
    /** What its agent answered once it was promoted. */
    promoted: PromotedAs
  },
): Promise<void> {
  await changeHoldings(tx, moved.clusterId, (h) => withPrimary(h, moved.promoted))
  await tx.query(`UPDATE cluster SET "primaryInstanceId" = $2, synchronous = $3 WHERE id = $1`, [
    moved.clusterId,
    moved.primary,
    moved.synchronous && JSON.stringify(moved.synchronous),
  ])
  await tx.query(
    `UPDATE instance SET "memberRole" = 'primary', "fenceOrderedAt" = NULL, "fenceTimeline" = NULL WHERE id = $1`,
    [moved.primary],
  )
  if (moved.former)
    await tx.query(
      `UPDATE instance SET "memberRole" = $2, "fenceTimeline" = $3,
              "fenceOrderedAt" = CASE WHEN $3::int IS NOT NULL THEN clock_timestamp() END WHERE id = $1`,
      [moved.former.instanceId, moved.former.memberRole, moved.former.fence?.timeline ?? null],
    )
  if (moved.fenceOrdered)
    await tx.query(
      `UPDATE instance SET "memberRole" = 'fenced', "fenceOrderedAt" = clock_timestamp(), "fenceTimeline" = $2
        WHERE id = ANY ($1)`,
      [moved.fenceOrdered.instanceIds, moved.fenceOrdered.timeline],
    )
}

/**
 * Brings the record of a cluster up to what its members report of its primary. Members that follow it are its standbys, and
 * to be fenced no more; of the others nothing is changed but that none of them is the primary. Where commits were meant to wait
 * for it, they are meant to wait for the former one.
 */
export async function takeReportedPrimary(
  tx: Transaction,
  clusterId: string,
  { instanceId, timeline, following }: Extract<PrimaryReported, { proven: true }>,
): Promise<void> {
  await changeHoldings(tx, clusterId, () => holdingsAsReported(timeline))
  await tx.query(
    `UPDATE cluster
        SET "primaryInstanceId" = $2,
            synchronous = replace(synchronous::text, $2::uuid::text, "primaryInstanceId"::text)::jsonb
      WHERE id = $1`,
    [clusterId, instanceId],
  )
  await tx.query(
    `UPDATE instance
        SET "memberRole" = CASE WHEN id = $2 THEN 'primary'
                                WHEN id = ANY ($3) OR coalesce(observed->'fenced', 'null') = 'null' THEN 'standby'
                                ELSE 'fenced' END,
            "fenceOrderedAt" = CASE WHEN id <> $2 AND id <> ALL ($3) THEN "fenceOrderedAt" END,
            "fenceTimeline" = CASE WHEN id <> $2 AND id <> ALL ($3) THEN "fenceTimeline" END
      WHERE "clusterId" = $1 AND "deletedAt" IS NULL`,
    [clusterId, instanceId, following],
  )
}

/** Changes what is recorded of who may hold acknowledged commits; of two that do so at once the second sees the first. */
export async function changeHoldings(
  tx: Transaction,
  clusterId: string,
  change: (holdings: ClusterHoldings) => ClusterHoldings,
): Promise<void> {
  const { rows } = await tx.query<{ holdings: unknown }>(
    'SELECT holdings FROM cluster WHERE id = $1 FOR NO KEY UPDATE',
    [clusterId],
  )
  if (!rows[0]) return
  const before = known(ClusterHoldings, rows[0].holdings) ?? unknownHoldings()
  const after = change(before)
  if (JSON.stringify(after) === JSON.stringify(before)) return
  await tx.query('UPDATE cluster SET holdings = $2 WHERE id = $1', [clusterId, JSON.stringify(after)])
}

/**
 * The same by what was seen of the primary, under the lease of its host's lane. An operation that is at work on the cluster
 * goes first: what was seen may be from before what it has begun. What is older than the cluster is not added to.
 */
export async function keepHoldings(
  pool: pg.Pool,
  hold: LeaseHold,
  clusterId: string,
  change: (holdings: ClusterHoldings, members: { instanceId: InstanceId; name: string }[]) => ClusterHoldings,
): Promise<void> {
  await inTransaction(pool, async (tx) => {
    await requireLease(tx, hold)
    await tx.query('SELECT FROM cluster WHERE id = $1 FOR NO KEY UPDATE', [clusterId])
    const { rows: members } = await tx.query<{ instanceId: InstanceId; name: string }>(
      `SELECT id AS "instanceId", name FROM instance
        WHERE "clusterId" = $1 AND "deletedAt" IS NULL
          AND NOT EXISTS (SELECT FROM operation o WHERE o."clusterId" = $1
                             AND ${isOpen('o.')})
          AND NOT EXISTS (SELECT FROM restored_record r
                           WHERE r."settledAt" IS NULL AND (r."clusterId" IS NULL OR r."clusterId" = $1))`,
      [clusterId],
    )
    if (members.length > 0) await changeHoldings(tx, clusterId, (holdings) => change(holdings, members))
  })
}

/** Writes what commits are meant to wait for; in the transaction of the step that confirmed it. */
export async function setClusterSynchronous(
  on: Queryable,
  clusterId: string,
  wanted: { synchronous: SynchronousStandbys | null; commitMode?: CommitMode | undefined },
): Promise<void> {
  await on.query(
    `UPDATE cluster SET synchronous = $2, "commitMode" = coalesce($3, "commitMode") WHERE id = $1`,
    [clusterId, wanted.synchronous && JSON.stringify(wanted.synchronous), wanted.commitMode ?? null],
  )
}

/** Writes whether and how a cluster fails over automatically; in the transaction of the step that saw to it on the members. */
export async function setClusterAutomatic(
  on: Queryable,
  clusterId: string,
  automatic: AutomaticFailover | null,
): Promise<void> {
  await on.query(`UPDATE cluster SET automatic = $2, "automaticWord" = NULL WHERE id = $1`, [
    clusterId,
    automatic && JSON.stringify(automatic),
  ])
}

/**
 * Writes what was decided about an automatic cluster; the same words once more change nothing. Answers whether they did. Other
 * words of the same kind (how long by now) keep the moment since when it is so.
 */
export async function setAutomaticWord(
  on: Queryable,
  clusterId: string,
  word: AutomaticWord | null,
): Promise<boolean> {
  const { rowCount } = await on.query(
    `UPDATE cluster
        SET "automaticWord" = CASE WHEN "automaticWord"->>'kind' = $3
                                   THEN jsonb_set($2, '{at}', "automaticWord"->'at') ELSE $2::jsonb END
      WHERE id = $1 AND automatic IS NOT NULL
        AND ("automaticWord"->>'kind', "automaticWord"->>'text') IS DISTINCT FROM ($3::text, $4::text)`,
    [clusterId, word && JSON.stringify(word), word?.kind ?? null, word?.text ?? null],
  )
  return rowCount === 1
}

/** Who orders what Floe decides automatically. */
export const CONTROLLER_ACTOR: Actor = { id: 'controller', name: 'Controller' }

/** What has been done about a cluster's outage, and before it. */
export type AutomaticHistory = {
  /** An operation that has not ended; `own` where the controller decided it because of the outage. */
  open: { operationId: string; kind: OperationKind; own: boolean } | null
  /** Since the last failover that the controller decided and that succeeded, ms. */
  sinceLastMs: number | null
  /** How often the controller has ordered either since the outage began. */
  tries: { start: number; failover: number }
}

/** Reads that of one cluster; the outage has lasted for `outageMs`. */
export async function readAutomaticHistory(
  on: Queryable,
  clusterId: string,
  outageMs: number,
): Promise<AutomaticHistory> {
  const { rows } = await on.query<AutomaticHistory>(
    `WITH decided AS (
       SELECT * FROM operation
        WHERE "clusterId" = $1 AND actor = $2 AND kind IN ('start-instance', 'failover-cluster'))
     SELECT (SELECT json_build_object('operationId', o.id, 'kind', o.kind,
                                      'own', EXISTS (SELECT FROM decided d WHERE d.id = o.id))
               FROM operation o WHERE o."clusterId" = $1 AND ${isOpen('o.')}
              ORDER BY o."createdAt" LIMIT 1) AS open,
            (SELECT (extract(epoch FROM clock_timestamp() - max("endedAt")) * 1000)::float8
               FROM decided WHERE kind = 'failover-cluster' AND state = 'succeeded') AS "sinceLastMs",
            (SELECT json_build_object('start', count(*) FILTER (WHERE kind = 'start-instance'),
                                      'failover', count(*) FILTER (WHERE kind = 'failover-cluster'))
               FROM decided WHERE "createdAt" > clock_timestamp() - make_interval(secs => $3)) AS tries`,
    [clusterId, CONTROLLER_ACTOR.id, outageMs / 1_000],
  )
  return rows[0] as AutomaticHistory
}

/** The last failover that the controller decided for a cluster, however it ended. */
export async function lastAutomaticFailover(
  on: Queryable,
  clusterId: string,
): Promise<{ operationId: string; state: OperationState; createdAt: number; promoted: string } | undefined> {
  const { rows } = await on.query(
    `SELECT o.id AS "operationId", o.state, (extract(epoch FROM o."createdAt") * 1000)::float8 AS "createdAt",
            i.name AS promoted
       FROM operation o JOIN instance i ON i.id = coalesce((o.result->>'instanceId')::uuid, o."instanceId")
      WHERE o."instanceId" IN (SELECT id FROM instance WHERE "clusterId" = $1)
        AND o."clusterId" = $1 AND o.actor = $2 AND o.kind = 'failover-cluster'
      ORDER BY o."createdAt" DESC LIMIT 1`,
    [clusterId, CONTROLLER_ACTOR.id],
  )
  return rows[0]
}

/** Asks a start that the controller ordered automatically to give up; false where it has ended, or is somebody else's. */
export async function giveUpOwnStart(on: Queryable, operationId: string): Promise<boolean> {
  const { rows } = await on.query<{ asked: boolean }>('SELECT give_up_own_operation($1) AS asked', [
    operationId,
  ])
  return rows[0]?.asked === true
}

/** Writes who gives torn pages back; in the transaction of the step that wired it. */
export async function setClusterPageRepair(
  on: Queryable,
  clusterId: string,
  pageRepair: PageRepair,
): Promise<void> {
  await on.query(`UPDATE cluster SET "pageRepair" = $2 WHERE id = $1`, [
    clusterId,
    JSON.stringify(pageRepair),
  ])
}

/** What a member is meant to be from now on; an order to fence it is carried out with that. */
export async function setMemberRole(
  on: Queryable,
  instanceId: string,
  memberRole: 'standby' | 'fenced',
): Promise<void> {
  await on.query(
    `UPDATE instance SET "memberRole" = $2, "fenceOrderedAt" = NULL, "fenceTimeline" = NULL WHERE id = $1`,
    [instanceId, memberRole],
  )
}

/** A promoted standby becomes the primary of a cluster of its own, named like it where that name is free. */
export async function moveToOwnCluster(tx: Transaction, instanceId: string): Promise<void> {
  await tx.query(
    `INSERT INTO cluster (id, name, "primaryInstanceId")
     SELECT gen_random_uuid(), CASE WHEN EXISTS (SELECT 1 FROM cluster c WHERE c.name = i.name AND c."deletedAt" IS NULL)
              THEN i.name || '-' || left(i.id::text, 8) ELSE i.name END, i.id
       FROM instance i
      WHERE i.id = $1
        AND NOT EXISTS (SELECT 1 FROM cluster c WHERE c."primaryInstanceId" = i.id AND c."deletedAt" IS NULL)`,
    [instanceId],
  )
  await tx.query(
    `UPDATE instance i SET "memberRole" = 'primary', "clusterId" = c.id FROM cluster c
      WHERE i.id = $1 AND c."primaryInstanceId" = i.id AND c."deletedAt" IS NULL`,
    [instanceId],
  )
}
