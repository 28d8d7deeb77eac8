import {
  type AgentAddress,
  type Fault,
  HOST_OFFLINE_MS,
  type HostState,
  hostState,
  InstanceEngine,
  type InstanceIntent,
  type InstanceLimits,
  type InstanceRole,
  type InstanceState,
  type LimitsObserved,
  type MemberRole,
  type OperationKind,
  type OperationState,
} from '@floe/domain'
import type { Queryable } from '../database'
import { agentAddressColumns } from './host'
import { kindsThatMake } from './kinds-that-make'
import { isOpen } from './kinds-that-read'
import { recordedLimits } from './limit-change'

/** How to reach an instance, as its agent said it; without a password. */
export type InstanceConnection = {
  host: string
  port: number
  socketDirectory: string
  user: string
  database: string
}

/** A setting that a file says otherwise than Floe left it. */
export type InstanceSettingDrift = {
  name: string
  file: string
  line: number | null
  was: string | null
  is: string | null
}

export type InstanceView = {
  instanceId: string
  name: string
  host: { hostId: string; name: string; state: HostState }
  /** The cluster it belongs to and what it is meant to be there. */
  cluster: {
    clusterId: string
    name: string
    memberRole: MemberRole
    members: number
    deletionProtected: boolean
  }
  createdAt: Date
  deletedAt: Date | null
  intent: InstanceIntent
  /** `unknown` when the last report is older than 30 s; `lastState` is what that report said. */
  state: InstanceState
  lastState: InstanceState
  because: string | null
  observedAt: Date | null
  /** Age of the observation by the control database's clock. */
  ageMs: number | null
  role: InstanceRole | null
  engineVersion: string | null
  systemIdentifier: string | null
  port: number | null
  directory: string | null
  connection: InstanceConnection | null
  postmasterPid: number | null
  startedAt: Date | null
  dataChecksums: boolean | null
  timeline: number | null
  pendingRestart: string[]
  /** Configuration drift, as its agent last reported it. */
  settingDrift: InstanceSettingDrift[]
  /** The user of the operating system that it runs as, and whether no other instance does; null: an older agent. */
  user: { name: string; own: boolean; separable: boolean } | null
  /** What was wrong with its processes when it was last seen. */
  processFault: Fault | null
  /** How much of its host it may use, as its agent confirmed it last. */
  limits: InstanceLimits
  /** What its agent last reported of that; null: an older agent. */
  limitsObserved: LimitsObserved | null
  /** From when on its work without a commit is a stall, ms; null: an older agent. */
  stallAfterMs: number | null
  /** Of which build its engine is; null where its agent does not report that. */
  engine: InstanceEngine | null
  /** The operation that was to make it and did not, where no engine of it was ever seen; null of any other instance. */
  creationFailed: { operationId: string } | null
  /** The operation on it, or on its cluster, that has not ended, if any; only one can be. */
  operation: {
    operationId: string
    kind: OperationKind
    state: OperationState
    progress: number | null
    message: string | null
  } | null
}

const instanceQuery = `
  SELECT i.id AS "instanceId", i.name, i."createdAt", i."deletedAt", i.intent, i.state, i.because, i."observedAt",
         i.role, i."engineVersion", i."systemIdentifier", i.port, i.observed, i.limits, h.id AS "hostId", h.name AS "hostName",
         c.id AS "clusterId", c.name AS "clusterName", c."deletionProtected", i."memberRole",
         (SELECT count(*)::int FROM instance m WHERE m."clusterId" = c.id AND m."deletedAt" IS NULL) AS "members",
         (extract(epoch FROM clock_timestamp() - i."observedAt") * 1000)::float8 AS "ageMs",
         (extract(epoch FROM clock_timestamp() - h."observedAt") * 1000)::float8 AS "hostAgeMs",
         h."revokedAt" IS NOT NULL AS "hostRevoked",
         o.id AS "operationId", o.kind AS "operationKind", o.state AS "operationState",
         o.progress AS "operationProgress", o.message AS "operationMessage",
         CASE WHEN i.state IN ('unknown', 'creating') AND o.id IS NULL THEN
           (SELECT made.id FROM operation made
             WHERE made."instanceId" = i.id AND made.kind IN (${kindsThatMake('new')})
               AND made.state IN ('failed', 'cancelled')
               AND NOT EXISTS (SELECT 1 FROM operation done WHERE done."instanceId" = i.id
                                  AND done.kind IN (${kindsThatMake('new')}) AND done.state = 'succeeded')
             ORDER BY made."createdAt" DESC LIMIT 1) END AS "failedCreation"
    FROM instance i
    JOIN host h ON h.id = i."hostId"
    JOIN cluster c ON c.id = i."clusterId"
    LEFT JOIN operation o ON o."clusterId" = i."clusterId" AND ${isOpen('o.')}`

type InstanceRow = {
  instanceId: string
  name: string
  createdAt: Date
  deletedAt: Date | null
  intent: InstanceIntent
  state: InstanceState
  because: string | null
  observedAt: Date | null
  role: InstanceRole | null
  engineVersion: string | null
  systemIdentifier: string | null
  port: number | null
  observed: {
    directory?: string
    connection?: InstanceConnection
    postmasterPid?: number | null
    startedAt?: number | null
    dataChecksums?: boolean | null
    timeline?: number | null
    pendingRestart?: string[]
    settingDrift?: InstanceSettingDrift[]
    user?: { name: string; own: boolean; separable: boolean }
    processFault?: Fault | null
    limits?: LimitsObserved
    stallAfterMs?: number
    engine?: unknown
  } | null
  limits: unknown
  hostId: string
  hostName: string
  clusterId: string
  clusterName: string
  deletionProtected: boolean
  memberRole: MemberRole
  members: number
  ageMs: number | null
  hostAgeMs: number | null
  hostRevoked: boolean
  operationId: string | null
  operationKind: OperationKind
  operationState: OperationState
  operationProgress: number | null
  operationMessage: string | null
  failedCreation: string | null
}

function instanceView(row: InstanceRow): InstanceView {
  const observed = row.observed ?? {}
  const tooOld = row.ageMs === null || row.ageMs >= HOST_OFFLINE_MS || row.hostRevoked
  return {
    instanceId: row.instanceId,
    name: row.name,
    host: {
      hostId: row.hostId,
      name: row.hostName,
      state: hostState({ ageMs: row.hostAgeMs, revoked: row.hostRevoked }),
    },
    cluster: {
      clusterId: row.clusterId,
      name: row.clusterName,
      memberRole: row.memberRole,
      members: row.members,
      deletionProtected: row.deletionProtected,
    },
    createdAt: row.createdAt,
    deletedAt: row.deletedAt,
    intent: row.intent,
    state: tooOld ? 'unknown' : row.state,
    lastState: row.state,
    because: row.because,
    observedAt: row.observedAt,
    ageMs: row.ageMs,
    role: row.role,
    engineVersion: row.engineVersion,
    systemIdentifier: row.systemIdentifier,
    // what was never made holds no port: the one it was meant to have may be another's by now
    port: row.failedCreation === null ? row.port : null,
    directory: observed.directory ?? null,
    connection: row.failedCreation === null ? (observed.connection ?? null) : null,
    postmasterPid: observed.postmasterPid ?? null,
    startedAt: observed.startedAt == null ? null : new Date(observed.startedAt),
    dataChecksums: observed.dataChecksums ?? null,
    timeline: observed.timeline ?? null,
    pendingRestart: observed.pendingRestart ?? [],
    settingDrift: observed.settingDrift ?? [],
    user: observed.user ?? null,
    processFault: observed.processFault ?? null,
    limits: recordedLimits(row.limits),
    limitsObserved: observed.limits ?? null,
    stallAfterMs: observed.stallAfterMs ?? null,
    engine: InstanceEngine.safeParse(observed.engine).data ?? null,
    creationFailed: row.failedCreation === null ? null : { operationId: row.failedCreation },
    operation:
      row.operationId === null
        ? null
        : {
            operationId: row.operationId,
            kind: row.operationKind,
            state: row.operationState,
            progress: row.operationProgress,
            message: row.operationMessage,
          },
  }
}

/** Where the agent of an instance answers, undefined for an instance that is deleted or was never there. */
export async function findInstanceAgent(
  on: Queryable,
  instanceId: string,
): Promise<AgentAddress | undefined> {
  const { rows } = await on.query<AgentAddress>(
    `SELECT ${agentAddressColumns} FROM instance i JOIN host h ON h.id = i."hostId"
      WHERE i.id = $1 AND i."deletedAt" IS NULL`,
    [instanceId],
  )
  return rows[0]
}

/** Instances that are not deleted, by name, each with its host and its open operation; `search` is part of a name. */
export async function listInstances(
  on: Queryable,
  input: { search?: string | undefined; hostId?: string | undefined } = {},
): Promise<InstanceView[]> {
  const { rows } = await on.query<InstanceRow>(
    `${instanceQuery}
      WHERE i."deletedAt" IS NULL AND ($1::text IS NULL OR strpos(i.name, lower($1)) > 0)
        AND ($2::uuid IS NULL OR i."hostId" = $2) ORDER BY i.name`,
    [input.search ?? null, input.hostId ?? null],
  )
  return rows.map(instanceView)
}

/** One instance by id, also a deleted one; undefined when there is none. */
export async function showInstance(on: Queryable, instanceId: string): Promise<InstanceView | undefined> {
  const { rows } = await on.query<InstanceRow>(`${instanceQuery} WHERE i.id = $1`, [instanceId])
  return rows[0] && instanceView(rows[0])
}

/** The instance of this name that is not deleted, undefined when there is none. */
export async function findInstance(on: Queryable, name: string): Promise<InstanceView | undefined> {
  const { rows } = await on.query<InstanceRow>(
    `${instanceQuery} WHERE i.name = $1 AND i."deletedAt" IS NULL`,
    [name],
  )
  return rows[0] && instanceView(rows[0])
}

/** Makes an instance's row: what is wanted, nothing observed yet. Throws a unique violation where the name is taken. */
export async function insertInstance(
  on: Queryable,
  instance: { instanceId: string; name: string; hostId: string; intent: InstanceIntent },
): Promise<void> {
  await on.query(`INSERT INTO instance (id, name, "hostId", intent) VALUES ($1, $2, $3, $4)`, [
    instance.instanceId,
    instance.name,
    instance.hostId,
    instance.intent,
  ])
}

/** Writes what is wanted of an instance; the transaction of the operation that moves it there. */
export async function setInstanceIntent(
  on: Queryable,
  instanceId: string,
  intent: InstanceIntent,
): Promise<void> {
  await on.query(`UPDATE instance SET intent = $2 WHERE id = $1`, [instanceId, intent])
}
