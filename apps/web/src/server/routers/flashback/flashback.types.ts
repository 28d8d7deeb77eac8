import {
  DatabaseName,
  FlashbackEvent,
  FlashbackLog,
  FlashbackLost,
  FlashbackPoint,
  FlashbackResult,
  FlashbackRows,
  FlashbackSample,
  FlashbackTableInfo,
  InstanceId,
  OperationId,
  TableOid,
} from '@floe/domain'
import { z } from 'zod'

export const FlashbackReadInput = z.object({
  instanceId: InstanceId,
  /** Also samples pages, to foretell what the log would take. */
  sample: z.boolean().default(false),
})
export const FlashbackRead = z.object({
  /** Null for an engine, or a database, without the views of flashback_log, and for an agent that does not know them. */
  log: FlashbackLog.nullable(),
  /** Moments from which pages can be rebuilt, oldest first. */
  points: z.array(FlashbackPoint),
  /** Null where none was asked for, or engine or agent cannot report it. */
  sample: FlashbackSample.nullable().default(null),
  /** ms since the epoch */
  observedAt: z.number(),
})

export const FlashbackTablesInput = z.object({
  instanceId: InstanceId,
  /** Null: the first by name that is not a template; `postgres` only where there is no other. */
  database: DatabaseName.nullable().default(null),
  /** A part of `schema.name`, a whole name being found first; empty: all. */
  search: z.string().max(200).default(''),
  limit: z.number().int().min(1).max(500).default(100),
})
export const FlashbackTables = z.object({
  databases: z.array(z.string()),
  /** The one whose tables these are. */
  database: z.string(),
  tables: z.array(FlashbackTableInfo),
  /** How many there are that match. */
  total: z.number().int(),
})
export type FlashbackTables = z.infer<typeof FlashbackTables>

const ofDatabase = { instanceId: InstanceId, database: DatabaseName }
export const FlashbackActivityInput = z.object({
  ...ofDatabase,
  /** Only of this one; null: of all. */
  table: TableOid.nullable().default(null),
})
/** Each call makes the agent read on; while it is not `complete`, ask again. */
export const FlashbackActivity = z.object({
  /** The newest first. */
  events: z.array(FlashbackEvent),
  coveredFrom: z.number().nullable(),
  coveredTo: z.number().nullable(),
  complete: z.boolean(),
  /** A change of a partitioned table may miss partitions in which fewer rows were changed. */
  leastPartitionRows: z.number().int().nullish(),
})
export type FlashbackActivity = z.infer<typeof FlashbackActivity>

export const FlashbackLostInput = z.object(ofDatabase)
export const FlashbackLostList = z.array(FlashbackLost)
export const FlashbackResultsInput = z.object(ofDatabase)
export const FlashbackResults = z.array(FlashbackResult)

/** Of a preview, a comparison, a merge, or a flashback that failed. */
export const FlashbackRowsInput = z.object({ operationId: OperationId })
export const FlashbackRowsRead = FlashbackRows
