import { NO_PAGE_REPAIR, type Protection, type RepairedRecovery } from '@floe/domain'
import type { CrashStart } from '../../sampler/checkpoint-follower'
import { type AskRows, viewsOf } from '../sql/extension-views'
import pageRepairRecoverySql from '../sql/page-repair-recovery.sql'
import pageRepairSourcesSql from '../sql/page-repair-sources.sql'
import pageRepairStatusSql from '../sql/page-repair-status.sql'

type StatusRow = {
  state: Protection['state']
  since: number
  why: string | null
  full_page_writes: boolean
  images_in_force: boolean | null
  guard: boolean
}
type SourceRow = {
  source: string
  healthy: boolean
  why: string | null
  flush_lsn: string | null
  replay_lsn: string | null
  checked_at: number | null
  pages: number
  bytes: number
}
type RecoveryRow = {
  kind: string
  policy: string
  started_at: number
  ended_at: number | null
  checked: number
  torn: number
  repaired: number
  cleared: number
  bytes: number
}
type Answer = { status: StatusRow | null; sources: SourceRow[]; recovery: RecoveryRow | null }

/** What protects the instance against torn pages; null for an engine, or a database, without the views. */
export async function readProtection(ask: AskRows): Promise<Protection | null> {
  const from = await viewsOf(ask, 'page_repair')
  if (!from) return null
  const rows = await ask(`
    select (select row_to_json(q) from (${from(pageRepairStatusSql)}) q) as status,
           (select coalesce(json_agg(q), '[]') from (${from(pageRepairSourcesSql)}) q) as sources,
           (select row_to_json(q) from (${from(pageRepairRecoverySql)}) q) as recovery`)
  const { status, sources, recovery } = (rows?.[0] ?? { status: null }) as Answer
  if (!status) return null
  return {
    state: status.state,
    since: status.since,
    why: status.why ?? '',
    fullPageWrites: status.full_page_writes,
    imagesInForce: status.images_in_force,
    guard: status.guard,
    sources: sources.map((row) => ({
      source: row.source,
      healthy: row.healthy,
      why: row.why,
      flushLsn: row.flush_lsn,
      replayLsn: row.replay_lsn,
      checkedAt: row.checked_at,
    })),
    recovery: recovery
      ? {
          kind: recovery.kind,
          policy: recovery.policy,
          startedAt: recovery.started_at,
          endedAt: recovery.ended_at,
          checked: recovery.checked,
          torn: recovery.torn,
          repaired: recovery.repaired,
          cleared: recovery.cleared,
          bytes: recovery.bytes,
          sources: sources
            .filter((row) => row.pages > 0)
            .map(({ source, pages, bytes }) => ({ source, pages, bytes })),
        }
      : null,
  }
}

/**
 * The last recovery with how long its whole start took. A start after a crash that page repair looked at nothing in is
 * one too.
 */
export function recoveryWithStart(
  recovery: RepairedRecovery | null,
  crashStart: CrashStart | null,
): RepairedRecovery | null {
  if (crashStart === null) return recovery
  const start = { beganAt: crashStart.beganAt, readyAt: crashStart.readyAt }
  if (recovery === null)
    return {
      kind: crashStart.standby ? 'standby' : 'crash',
      policy: NO_PAGE_REPAIR,
      startedAt: start.beganAt,
      endedAt: null,
      start,
      checked: 0,
      torn: 0,
      repaired: 0,
      cleared: 0,
      bytes: 0,
      sources: [],
    }
  // the log has whole milliseconds, the engine's view has parts of them
  const within = recovery.startedAt >= start.beganAt - 1 && recovery.startedAt <= start.readyAt
  return within ? { ...recovery, start } : recovery
}

/** What of it is news worth a report at once; positions and times of looks are not. */
export function newsOf(p: Protection | null): string {
  return p === null
    ? ''
    : JSON.stringify([
        p.state,
        p.fullPageWrites,
        p.imagesInForce,
        p.guard,
        // a standby decides nothing by its sources: theirs can wait for the next report
        p.imagesInForce === null ? p.sources.length : p.sources.map((s) => [s.source, s.healthy]),
        p.recovery?.startedAt,
        p.recovery?.endedAt,
        p.recovery?.start?.readyAt,
      ])
}
