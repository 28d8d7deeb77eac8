import {
  automaticPageRepair,
  type ClusterMember,
  type ClusterObserved,
  CommitMode,
  ConnectionTarget,
  HOST_OFFLINE_MS,
  hostState,
  PageRepair,
  Protection,
  ReplicationObserved,
  SynchronousStandbys,
} from '@floe/domain'
import { z } from 'zod'
import type { Queryable, Transaction } from '../database'

const Fenced = z.object({ at: z.number(), reason: z.string() })

const clusterQuery = `
  SELECT c.id AS "clusterId", c.name, c.control, c."primaryInstanceId", c.synchronous, c."commitMode", c."pageRepair",
         coalesce((SELECT json_agg(json_build_object(
             'instanceId', i.id, 'name', i.name, 'hostId', h.id, 'hostName', h.name, 'memberRole', i."memberRole",
             'state', i.state, 'because', i.because, 'role', i.role, 'engineVersion', i."engineVersion",
             'systemIdentifier', i."systemIdentifier",
             'ageMs', (extract(epoch FROM clock_timestamp() - i."observedAt") * 1000)::float8,
             'hostAgeMs', (extract(epoch FROM clock_timestamp() - h."observedAt") * 1000)::float8,
             'hostRevoked', h."revokedAt" IS NOT NULL,
             'timeline', (i.observed->>'timeline')::int, 'connection', i.observed->'connection',
             'replication', i.observed->'replication', 'fenced', i.observed->'fenced',
             'protection', i.observed->'protection')
             ORDER BY i.id <> c."primaryInstanceId", i.name)
           FROM instance i JOIN host h ON h.id = i."hostId"
          WHERE i."clusterId" = c.id AND i."deletedAt" IS NULL), '[]') AS members
    FROM cluster c`

type MemberRow = Omit<ClusterMember, 'hostState' | 'connection' | 'replication' | 'fenced' | 'protection'> & {
  hostAgeMs: number | null
  hostRevoked: boolean
  connection: unknown
  replication: unknown
  fenced: unknown
  protection: unknown
}
type ClusterRow = Omit<ClusterObserved, 'synchronous' | 'commitMode' | 'pageRepair' | 'members'> & {
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
  }
}

const clusterObserved = (row: ClusterRow): ClusterObserved => ({
  ...row,
  synchronous: known(SynchronousStandbys, row.synchronous),
  commitMode: CommitMode.parse(row.commitMode),
  pageRepair: known(PageRepair, row.pageRepair) ?? automaticPageRepair,
  members: row.members.map(clusterMember),
})

/** Clusters that are not deleted, by name, each with its members as last observed, the primary first. */
export async function listClusters(on: Queryable): Promise<ClusterObserved[]> {
  const { rows } = await on.query<ClusterRow>(`${clusterQuery} WHERE c."deletedAt" IS NULL ORDER BY c.name`)
  return rows.map(clusterObserved)
}

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

/** Makes the row of a standby anew whose creation was taken back; throws a unique violation where the name is taken. */
export async function reviveStandby(on: Queryable, instanceId: string): Promise<void> {
  await on.query(
    `UPDATE instance SET "deletedAt" = NULL, intent = 'running', because = NULL, "observedAt" = NULL, observed = NULL
      WHERE id = $1 AND "deletedAt" IS NOT NULL`,
    [instanceId],
  )
}

/**
 * Makes another member the primary; in the transaction of the step that promoted it. The former one is from then on a
 * standby (it follows) or fenced (it must not accept a write); `fenceOrdered` where that is still to be done on its host.
 */
export async function moveClusterPrimary(
  tx: Transaction,
  moved: {
    clusterId: string
    primary: string
    former: { instanceId: string; memberRole: 'standby' | 'fenced'; fenceOrdered: boolean } | null
    synchronous: SynchronousStandbys | null
  },
): Promise<void> {
  await tx.query(`UPDATE cluster SET "primaryInstanceId" = $2, synchronous = $3 WHERE id = $1`, [
    moved.clusterId,
    moved.primary,
    moved.synchronous && JSON.stringify(moved.synchronous),
  ])
  await tx.query(`UPDATE instance SET "memberRole" = 'primary', "fenceOrderedAt" = NULL WHERE id = $1`, [
    moved.primary,
  ])
  if (moved.former)
    await tx.query(
      `UPDATE instance SET "memberRole" = $2, "fenceOrderedAt" = CASE WHEN $3 THEN clock_timestamp() END WHERE id = $1`,
      [moved.former.instanceId, moved.former.memberRole, moved.former.fenceOrdered],
    )
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
  await on.query(`UPDATE instance SET "memberRole" = $2, "fenceOrderedAt" = NULL WHERE id = $1`, [
    instanceId,
    memberRole,
  ])
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
