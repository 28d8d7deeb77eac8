import { FlashbackLog, FlashbackPoint, FlashbackSample } from '@floe/domain'
import { z } from 'zod'
import { sqlState } from '../process/connection'
import { type AskRows, viewsOf } from '../sql/extension-views'
import flashbackLogSql from '../sql/flashback-log.sql'
import flashbackPointsSql from '../sql/flashback-points.sql'
import flashbackSampleSql from '../sql/flashback-sample.sql'

const UNDEFINED_FUNCTION = '42883'

/** The flashback log of an instance; null for an engine, or a database, without its views. */
export async function readFlashbackLog(ask: AskRows): Promise<FlashbackLog | null> {
  const within = await viewsOf(ask, 'flashback_log')
  const row = within ? (await ask(within(flashbackLogSql)))?.[0] : undefined
  if (!row) return null
  const off = row.state === 'off'
  const seen = FlashbackLog.safeParse({
    state: row.state,
    mode: off ? null : row.mode,
    oldestAt: numberOf(row.oldest_at),
    newestAt: numberOf(row.newest_at),
    newestPointAt: numberOf(row.newest_point_at),
    points: row.points,
    windowBeganAt: numberOf(row.window_began_at),
    windowsEnded: row.windows_ended,
    lastEndedAt: numberOf(row.last_ended_at),
    lastEndReason: row.last_end_reason,
    shortened:
      row.shortened == null
        ? undefined
        : row.shortened === 0
          ? null
          : { times: row.shortened, lastAt: row.last_shortened_at, reason: row.last_shortened_reason },
    sizeBytes: row.size_bytes,
    bytesPerSecond: numberOf(row.bytes_per_second),
    failures: row.failures,
    limits: {
      recoveryArea: row.recovery_area,
      rotationMs: row.rotation_ms,
      keepBytes: row.keep_bytes,
      maxBytes: row.max_bytes === 0 ? null : row.max_bytes,
      recycleBytes: row.recycle_bytes === 0 ? null : (numberOf(row.recycle_bytes) ?? undefined),
    },
  })
  // a view of a later version may answer otherwise: then the log is unknown, not off
  return seen.success ? seen.data : null
}

/** The moments from which pages can be rebuilt, oldest first. */
export async function readFlashbackPoints(ask: AskRows): Promise<FlashbackPoint[]> {
  const within = await viewsOf(ask, 'flashback_log')
  if (!within) return []
  return z.array(FlashbackPoint).parse((await ask(within(flashbackPointsSql))) ?? [])
}

/** What images take in the log, on or off; null for an engine that cannot report it, and where no page was changed. */
export async function sampleFlashbackPages(ask: AskRows): Promise<FlashbackSample | null> {
  const within = await viewsOf(ask, 'flashback_log')
  if (!within) return null
  try {
    const row = (await ask(within(flashbackSampleSql)))?.[0]
    const seen = FlashbackSample.safeParse({
      pages: row?.pages,
      pageBytes: row?.page_bytes,
      imageBytes: row?.image_bytes,
    })
    return seen.success ? seen.data : null
  } catch (error) {
    // an engine of before has no such function
    if (sqlState(error) === UNDEFINED_FUNCTION) return null
    throw error
  }
}

/** What of it is news worth a report at once: size, rate and the newest point change all the time. */
export const newsOfFlashback = (log: FlashbackLog | null): string =>
  log === null
    ? ''
    : JSON.stringify([
        log.state,
        log.mode,
        log.windowBeganAt,
        log.windowsEnded,
        Boolean(log.shortened),
        log.limits,
      ])

const numberOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null
