import {
  maintainPartitions,
  pruneCheckpoints,
  pruneRecords,
  pruneStalls,
  rollUpSamples,
  takeLease,
} from '@floe/db'
import { runLoop } from './loop'
import type { ControllerParts } from './parts'

const ROLL_UP_EVERY_MS = 10_000
const PARTITIONS_EVERY_MS = 60_000
const RECORDS_EVERY_MS = 600_000

/** Rolls samples up, makes and drops partitions, and drops records kept long enough, by one controller at a time. */
export async function runMaintenance(
  parts: Pick<ControllerParts, 'db' | 'log' | 'database' | 'owner'>,
  signal: AbortSignal,
): Promise<void> {
  const { db, log, database, owner } = parts
  let partitionsAt = 0
  let recordsAt = 0
  await runLoop({ name: 'maintain samples', everyMs: ROLL_UP_EVERY_MS, signal, log, database }, async () => {
    // longer than a pass takes: catching up after hours may roll up for a while
    const hold = await takeLease(db.pool, { name: 'maintain samples', owner, leaseMs: 3 * ROLL_UP_EVERY_MS })
    if (!hold) return
    if (Date.now() - partitionsAt >= PARTITIONS_EVERY_MS) {
      const { created, dropped } = await maintainPartitions(db.pool)
      if (created > 0 || dropped.length > 0) log.info('telemetry.partitions', { created, dropped })
      await pruneCheckpoints(db.pool)
      await pruneStalls(db.pool)
      partitionsAt = Date.now()
    }
    if (Date.now() - recordsAt >= RECORDS_EVERY_MS) {
      const deleted = await pruneRecords(db.pool)
      if (Object.values(deleted).some((n) => n > 0)) log.info('records.pruned', deleted)
      recordsAt = Date.now()
    }
    await rollUpSamples(db.pool)
  })
}
