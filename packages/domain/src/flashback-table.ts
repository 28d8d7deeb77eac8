import { z } from 'zod'
import { Lsn } from './lsn'

/** What distinguishes a table from all others of its database, whatever it is called. */
export const TableOid = z
  .number()
  .int()
  .min(1, 'must be the number of a table')
  .max(4_294_967_295, 'must be the number of a table')

/** `schema.name` as a person saw it; the number says which table is meant. */
export const TableName = z.string().min(1, 'must not be empty').max(300, 'must have at most 300 characters')

/** Of a table that is to be made. */
export const ResultName = z.string().min(1, 'must not be empty').max(63, 'must have at most 63 characters')

/** An SQL condition on the columns of a table; anyone who writes one learns of rows by their counts. */
export const RowCondition = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(1_000, 'must have at most 1,000 characters')

/** Rows of then compared with those of now, by the columns of a key, or as whole rows where there is none. */
export const FlashbackCounts = z.object({
  rowsThen: z.number().int(),
  rowsNow: z.number().int(),
  same: z.number().int(),
  /** There now, and not then. */
  added: z.number().int(),
  /** There then, and not now. */
  removed: z.number().int(),
  /** 0 without a key. */
  changed: z.number().int(),
  keyColumns: z.array(z.string()).nullable(),
})
export type FlashbackCounts = z.infer<typeof FlashbackCounts>

export const MISSING_MAX = 50
export const MISSING_LENGTH = 2_000

/** The table that a flashback made. */
export const FlashbackMade = z.object({
  result: TableOid,
  /** `schema.name` */
  resultName: TableName,
  rows: z.number().int(),
  bytes: z.number(),
  /**
   * Of a dropped table that is back, the engine's words for each piece of its definition that it does not have, of the first
   * `MISSING_MAX`. Left out where that is not known, as by an agent of before contract 1.28.
   */
  missing: z.array(z.string().max(MISSING_LENGTH)).max(MISSING_MAX).optional(),
})
export type FlashbackMade = z.infer<typeof FlashbackMade>

/** How many rows a merge is to insert, restore and delete, as a dry run counted them. */
export const MergeCounts = z.object({
  inserted: z.number().int().min(0),
  restored: z.number().int().min(0),
  deleted: z.number().int().min(0),
})
export type MergeCounts = z.infer<typeof MergeCounts>

export const FlashbackMerged = MergeCounts.extend({
  /** Rows that were not inserted, because another row has their value in a unique index. */
  conflicts: z.number().int(),
})
export type FlashbackMerged = z.infer<typeof FlashbackMerged>

export const FlashbackSwapped = z.object({
  /** Rows of the table before; the result has them now. */
  rowsBefore: z.number().int(),
  rowsNow: z.number().int(),
  /** Of the result after the swap: it may be another one. */
  result: TableOid,
})
export type FlashbackSwapped = z.infer<typeof FlashbackSwapped>

export const FlashbackTableKind = z.enum(['table', 'partitioned', 'materialized'])
export type FlashbackTableKind = z.infer<typeof FlashbackTableKind>

/** A table that somebody may want back. */
export const FlashbackTableInfo = z.object({
  oid: TableOid,
  schema: z.string(),
  name: z.string(),
  owner: z.string(),
  kind: FlashbackTableKind,
  /** With its TOAST table; of all partitions. */
  sizeBytes: z.number(),
  /** Null where nobody has estimated it yet. */
  rowsEstimate: z.number().nullable(),
  /** ms since the epoch, as far as the WAL that was read contains it; null: not in it. */
  lastChangedAt: z.number().nullable(),
  /** Why it cannot be flashed back at all; null where it can. */
  whyNot: z.string().nullable(),
})
export type FlashbackTableInfo = z.infer<typeof FlashbackTableInfo>

/** What happened to a table, according to the WAL. */
export const FlashbackEventKind = z.enum(['change', 'truncate', 'drop', 'rewrite', 'ddl'])
export type FlashbackEventKind = z.infer<typeof FlashbackEventKind>

export const FlashbackEvent = z.object({
  kind: FlashbackEventKind,
  /** ms since the epoch: when it was committed. */
  at: z.number(),
  table: TableOid,
  /** Null of a table that is not there any more, and whose name nobody knows. */
  tableName: z.string().nullable(),
  inserted: z.number(),
  updated: z.number(),
  deleted: z.number(),
  /** Of a partitioned table: how many of its partitions it happened to, counts being theirs together. Else left out. */
  partitions: z.number().int().nullish(),
})
export type FlashbackEvent = z.infer<typeof FlashbackEvent>

/** How a table lost its rows, or its file. */
export const LossKind = z.enum(['dropped', 'truncated', 'rewritten'])
export type LossKind = z.infer<typeof LossKind>

/** A table that was dropped, truncated or rewritten, and whose former file is kept. */
export const FlashbackLost = z.object({
  table: TableOid,
  tableName: z.string(),
  kind: LossKind,
  at: z.number(),
  /** Distinguishes this event from others of the table. */
  lsn: Lsn,
  /** Null of a partitioned one. */
  sizeBytes: z.number().nullable(),
  /** It can be had as it was at any moment since; null where that is not known. */
  restorableSince: z.number().nullable(),
  /** A CREATE TABLE of its columns, where it was dropped. */
  definition: z.string().nullable(),
})
export type FlashbackLost = z.infer<typeof FlashbackLost>

/** A table that a flashback made and that is still there. */
export const FlashbackResult = z.object({
  result: TableOid,
  resultName: z.string(),
  /** The table whose rows it has; null where that one is not there any more. */
  table: TableOid.nullable(),
  tableName: z.string(),
  owner: z.string(),
  /** Its rows are those of this moment; null of one that a swap has given the former rows. */
  at: z.number().nullable(),
  /** Null while somebody has it locked. */
  sizeBytes: z.number().nullable(),
})
export type FlashbackResult = z.infer<typeof FlashbackResult>

/** Some rows of a comparison; values are text, cut to 200 characters. Never stored. */
export const FlashbackRows = z.object({
  columns: z.array(z.string()),
  /** Null where the table has no key: then no rows count as changed. */
  keyColumns: z.array(z.string()).nullable(),
  /** In the order in which a merge of selected rows counts them. */
  samples: z.array(
    z.object({
      kind: z.enum(['removed', 'changed', 'added']),
      rowThen: z.array(z.string().nullable()).nullable(),
      rowNow: z.array(z.string().nullable()).nullable(),
    }),
  ),
  /** Of a merge with conflicts: one of them, in the engine's words. Of an operation that failed: why, in its words. */
  conflictExample: z.string().nullable(),
})
export type FlashbackRows = z.infer<typeof FlashbackRows>

/** How many flashbacks that only read work on an instance at once; others wait. */
export const FLASHBACK_READERS_MAX = 2
