import { AGENT_ROLE, fault } from '@floe/domain'
import { pause } from '@floe/host/wait'
import type pg from 'pg'
import { z } from 'zod'
import { connectDatabase } from '../../engine/flashback/database-session'
import { type EngineAddress, sqlState } from '../../engine/process/connection'
import { answered } from '../../engine/process/patience'
import backendSql from '../../engine/sql/own-backend.sql'
import transactionSql from '../../engine/sql/own-transaction.sql'
import outcomeSql from '../../engine/sql/transaction-outcome.sql'
import type { TaskContext } from '../runner/task'
import { watched } from './watched-statement'

/** A backend whose agent is gone ends within a second; one that hangs is not waited for longer. */
const GONE_MS = 20_000
const OUTCOME_MS = 30_000

/**
 * What is kept for a run after a kill: the session, before anything is done in it; then the transaction and what it came to,
 * before it is committed.
 */
const Note = z.object({
  pid: z.number(),
  backendStart: z.string(),
  transaction: z.object({ xid: z.string(), timeline: z.string(), result: z.unknown() }).nullable(),
})
type Note = z.infer<typeof Note>
type Transaction = NonNullable<Note['transaction']>

/**
 * Does something in one transaction, once: a run after a kill, and one whose commit was not answered, ask the engine what became of
 * the transaction that was noted before its commit. Its WAL up to then is flushed before it is noted, so that even a crash of
 * the engine cannot give its number to another one.
 */
export async function provenTransaction<T, P>(
  address: EngineAddress,
  database: string,
  context: TaskContext,
  {
    prepare,
    work,
  }: {
    /** Done before the transaction; safe to be done again. */
    prepare: (client: pg.Client) => Promise<P>
    work: (client: pg.Client, prepared: P) => Promise<T>
  },
): Promise<T> {
  const { data: note } = Note.safeParse(context.note.read())
  if (note) {
    await endBackend(address, database, note)
    if (note.transaction && (await hasCommitted(address, database, note.transaction)))
      return note.transaction.result as T
  }
  return watched(address, database, context, async (client, pid) => {
    const [own] = (await client.query<{ backend_start: string }>(backendSql)).rows
    const session = { pid, backendStart: own?.backend_start ?? '' }
    context.note.write({ ...session, transaction: null } satisfies Note)
    const prepared = await prepare(client)
    await client.query('begin')
    const result = await work(client, prepared)
    const [now] = (await client.query<{ xid: string; timeline: string }>(transactionSql)).rows
    const transaction = { xid: now?.xid ?? '', timeline: now?.timeline ?? '', result }
    context.signal.throwIfAborted()
    context.note.write({ ...session, transaction } satisfies Note)
    try {
      const ended = await client.query('commit')
      // an aborted transaction answers COMMIT with a rollback
      if (ended.command !== 'COMMIT')
        throw fault('flashback.refused', 'the engine rolled the transaction back')
    } catch (error) {
      // with the engine's word it was rolled back; without it may have been committed
      if (sqlState(error) !== null && !sqlState(error)?.startsWith('57P')) throw error
      if (!(await hasCommitted(address, database, transaction))) throw error
    }
    return result
  })
}

/** Sees to it that the session of a run before is gone: what it did not commit by then is rolled back. */
async function endBackend(address: EngineAddress, database: string, note: Note): Promise<void> {
  const client = await connectDatabase(address, database, 5_000)
  try {
    const until = performance.now() + GONE_MS
    for (;;) {
      const { rows } = await answered(
        client.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
            where pid = $1 and backend_start = $2::timestamptz and usename = '${AGENT_ROLE}'`,
          [note.pid, note.backendStart],
        ),
      )
      if (rows.length === 0) return
      if (performance.now() > until)
        throw fault('flashback.still_running', 'a session of a run before does not end', {
          detail: `It is process ${note.pid} of the engine.`,
          hint: 'The log of the instance says why. Retry once it is gone.',
        })
      await pause(200)
    }
  } finally {
    await client.end().catch(() => {})
  }
}

type Outcome = { standby: boolean; timeline: string | null; status: string | null }

/** Whether it did; throws `flashback.unknown_outcome` where the engine cannot know. */
async function hasCommitted(
  address: EngineAddress,
  database: string,
  { xid, timeline }: Transaction,
): Promise<boolean> {
  const until = performance.now() + OUTCOME_MS
  for (;;) {
    const seen = await outcomeOf(address, database, xid).catch((error: unknown) => {
      // the number of a transaction that has not been yet: what it was is lost with a crash
      if (sqlState(error) === '22023') return { standby: false, timeline, status: 'aborted' }
      if (performance.now() > until) throw error
      return null
    })
    if (seen?.status === 'committed' && seen.timeline === timeline) return true
    if (seen?.status === 'aborted' && seen.timeline === timeline) return false
    if (performance.now() > until || (seen && seen.status !== 'in progress'))
      throw fault('flashback.unknown_outcome', 'whether the change was made is not known', {
        detail: 'The instance is another primary’s standby now, or took over from one, since it was begun.',
        hint: 'Compare again before you order it once more.',
      })
    await pause(300)
  }
}

async function outcomeOf(address: EngineAddress, database: string, xid: string): Promise<Outcome | null> {
  const client = await connectDatabase(address, database, 5_000)
  try {
    return (await answered(client.query<Outcome>(outcomeSql, [xid]))).rows[0] ?? null
  } finally {
    await client.end().catch(() => {})
  }
}
