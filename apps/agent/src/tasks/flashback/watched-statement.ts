import { FaultError } from '@floe/domain'
import { pause } from '@floe/host/wait'
import type pg from 'pg'
import { connectDatabase } from '../../engine/flashback/database-session'
import { engineFault } from '../../engine/flashback/engine-fault'
import { findFunctions } from '../../engine/flashback/functions'
import { type EngineAddress, sqlState } from '../../engine/process/connection'
import { abandon, answered } from '../../engine/process/patience'
import progressSql from '../../engine/sql/flashback-progress.sql'
import type { TaskContext } from '../runner/task'

/** How often is asked how far it is. */
const WATCH_MS = 300
const BLOCK_BYTES = 8_192

type Progress = {
  phase: string | null
  wal_bytes_total: number | null
  wal_bytes_done: number | null
  blocks_total: number | null
  blocks_done: number | null
  rows: number | null
  partitions_total: number | null
  partitions_done: number | null
}

/** The phases in which the table itself is read; before them come the catalogs, which are small. */
const ofTable = ['reading TOAST', 'reading the table']
/** More is not done before the statement has ended. */
const MOST = 0.99

/** A counter of the engine's, which begins again with each pass. */
function passes(): (done: number, total: number) => { done: number; total: number } {
  let before = 0
  let last = { done: 0, total: 0 }
  return (done, total) => {
    if (done < last.done || total !== last.total) before += last.done
    last = { done, total }
    return { done: before + done, total: before + Math.max(done, total) }
  }
}

type Work = {
  done: number
  /** Null while it is not known. */
  total: number | null
  /** 0 to 1, and never less than before; null while nothing can be said. */
  share: number | null
}

/**
 * Adds up the passes of a flashback. How much there is to do is known once the table itself is read: its blocks, and WAL once
 * more, as much of it as was read to find the moment. Of partitions only how many there are is known.
 */
export function workOf(): (seen: Progress) => Work {
  const [walOf, blocksOf] = [passes(), passes()]
  let begun: { wal: number; blocks: number } | null = null
  let walWanted = 0
  let share: number | null = null
  return (seen) => {
    const wal = walOf(seen.wal_bytes_done ?? 0, seen.wal_bytes_total ?? 0)
    const blocks = blocksOf((seen.blocks_done ?? 0) * BLOCK_BYTES, (seen.blocks_total ?? 0) * BLOCK_BYTES)
    const done = wal.done + blocks.done
    if (begun === null && ofTable.includes(seen.phase ?? ''))
      begun = { wal: wal.done, blocks: blocks.done - (seen.blocks_done ?? 0) * BLOCK_BYTES }
    if (begun === null) {
      walWanted = Math.max(walWanted, seen.wal_bytes_total ?? 0)
      return { done, total: null, share }
    }
    const partitions = seen.partitions_total ?? 0
    const rest = Math.max(wal.total - begun.wal, walWanted) + (blocks.total - begun.blocks)
    const [of, part] =
      partitions > 1 ? [partitions, seen.partitions_done ?? 0] : [rest, done - begun.wal - begun.blocks]
    if (of > 0) share = Math.max(share ?? 0, Math.min(MOST, part / of))
    return { done, total: partitions > 1 ? null : begun.wal + begun.blocks + rest, share }
  }
}

/**
 * Runs statements in a database over a session of their own, while another one reports how far the engine is with them and
 * cancels them when that is asked for. An engine that answers nothing hangs: then the task fails, so that its operation keeps
 * nobody from a failover.
 */
export async function watched<T>(
  address: EngineAddress,
  database: string,
  context: TaskContext,
  run: (client: pg.Client, pid: number) => Promise<T>,
): Promise<T> {
  const watcher = await connectDatabase(address, database, 60_000)
  try {
    const client = await connectDatabase(address, database, 0)
    try {
      return await watch(watcher, client, context, run)
    } finally {
      await Promise.race([client.end().catch(() => {}), pause(1_000)])
    }
  } catch (error) {
    // query_canceled, by our own cancel; and what came of it that the connection was ended for it
    if (context.signal.aborted && (sqlState(error) === '57014' || error === context.signal.reason))
      throw context.signal.reason
    throw error instanceof FaultError ? error : engineFault(error)
  } finally {
    await Promise.race([watcher.end().catch(() => {}), pause(1_000)])
  }
}

async function watch<T>(
  watcher: pg.Client,
  client: pg.Client,
  context: TaskContext,
  run: (client: pg.Client, pid: number) => Promise<T>,
): Promise<T> {
  const [own] = (await answered(client.query<{ pid: number }>('select pg_backend_pid() as pid'))).rows
  const pid = own?.pid as number
  let over = false
  const statements = run(client, pid).finally(() => {
    over = true
  })
  const cancel = () => void watcher.query('select pg_cancel_backend($1)', [pid]).catch(() => {})
  context.signal.addEventListener('abort', cancel, { once: true })
  if (context.signal.aborted) cancel()
  const told = tell(watcher, pid, context, () => over, statements).catch((error: unknown) => {
    // the statement would wait for an engine that hangs
    abandon(client)
    throw error
  })
  try {
    // what the watch throws is why the statement ended, not the other way round
    const [ended, watching] = await Promise.allSettled([statements, told])
    if (watching.status === 'rejected') throw watching.reason
    if (ended.status === 'rejected') throw ended.reason
    return ended.value
  } finally {
    context.signal.removeEventListener('abort', cancel)
  }
}

async function tell(
  watcher: pg.Client,
  pid: number,
  context: TaskContext,
  isOver: () => boolean,
  statements: Promise<unknown>,
): Promise<void> {
  const work = workOf()
  let sql: string | null = null
  while (!isOver()) {
    // the extension may be made by the very statements
    sql ??= (await answered(findFunctions(watcher)))?.within(progressSql) ?? null
    const { rows } = await answered(
      sql ? watcher.query<Progress>(sql, [pid]) : watcher.query<Progress>('select where false'),
    )
    const [seen] = rows
    if (seen?.phase && !isOver()) {
      const { done, total, share } = work(seen)
      context.worked(done, total)
      // what is done of what is known yet may be all of it, time and again
      context.progress(share)
      context.say(seen.rows ? `${seen.phase}: ${seen.rows} rows found` : seen.phase)
    }
    await Promise.race([statements.catch(() => {}), pause(WATCH_MS)])
  }
}
