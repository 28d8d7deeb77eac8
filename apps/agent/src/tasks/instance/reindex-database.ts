import { FaultError, fault, type Reindexed } from '@floe/domain'
import { pause } from '@floe/host/wait'
import type pg from 'pg'
import { z } from 'zod'
import { type EngineAddress, sqlState, withEngine } from '../../engine/process/connection'
import { abandon, answered } from '../../engine/process/patience'
import indexesSql from '../../engine/sql/indexes.sql'
import type { TaskBody, TaskContext } from '../runner/task'

/** How often is asked how far the index is that is being built. */
const WATCH_MS = 300
/** What a rebuild has left is dropped unless a transaction stands in the way for longer: a cancel must not wait for it. */
const DROP_WAIT = '10s'
/** A drop waits for locks three times at the most. */
const DROP_MS = 45_000

type Index = {
  oid: number
  schema: string
  name: string
  table: number
  bytes: number
  /** Made by a rebuild, and not an index yet or no longer. */
  transient: boolean
  whyNot: string | null
  pid: number | null
  phase: string | null
  fraction: number | null
}

/**
 * What is kept for a run after a kill: which indexes are done, by their names, and the one that is being rebuilt, with what
 * rebuilds of others had left on its table before.
 */
const Note = z.object({
  done: z.array(z.object({ index: z.string(), bytesBefore: z.number(), bytesAfter: z.number() })),
  building: z.object({ table: z.number(), name: z.string(), before: z.array(z.number()) }).nullable(),
})
type Note = z.infer<typeof Note>

const nameOf = ({ schema, name }: Pick<Index, 'schema' | 'name'>) => `${schema}.${name}`

/**
 * Rebuilds the indexes of a database by REINDEX INDEX CONCURRENTLY, each in turn. What a cancel, a failure or a kill leaves of
 * a rebuild (an index that is not valid) is dropped where it is known to be ours. One that cannot be rebuilt does not keep the
 * others from it; the task fails in the end and names it.
 */
export const reindexDatabase: TaskBody<'reindex-database'> = async (task, context) => {
  const address = { ...context.instances.get(task.instanceId).address, database: task.database }
  try {
    return await withEngine(address, (watcher) => rebuildAll(address, watcher, context), 60_000)
  } catch (error) {
    // 3D000: invalid_catalog_name
    if (error instanceof FaultError && sqlState(error.cause) === '3D000')
      throw fault('database.not_found', `database "${task.database}" does not exist`, { cause: error })
    throw error
  }
}

const indexesOf = async (client: pg.Client, table: number | null): Promise<Index[]> =>
  (await answered(client.query<Index>(indexesSql, [table]))).rows

async function rebuildAll(
  address: EngineAddress,
  watcher: pg.Client,
  context: TaskContext,
): Promise<Reindexed> {
  const { data: kept } = Note.safeParse(context.note.read())
  const note: Note = kept ?? { done: [], building: null }
  const keep = (change: Partial<Note>) => context.note.write(Object.assign(note, change))
  await answered(watcher.query(`set lock_timeout = '${DROP_WAIT}'`))
  await dropTransient(watcher, note, context)
  keep({ building: null })
  const done = new Set(note.done.map((d) => d.index))
  const all = await indexesOf(watcher, null)
  const left = all.filter((i) => i.whyNot === null && !done.has(nameOf(i)))
  const skipped = all.flatMap((i) => (i.whyNot === null ? [] : [{ index: nameOf(i), why: i.whyNot }]))
  let doneBytes = note.done.reduce((sum, d) => sum + d.bytesBefore, 0)
  const totalBytes = doneBytes + left.reduce((sum, i) => sum + i.bytes, 0)
  const failed: { index: string; why: string }[] = []
  for (const [n, index] of left.entries()) {
    context.signal.throwIfAborted()
    const named = nameOf(index)
    const at = (fraction: number) => context.worked(doneBytes + fraction * index.bytes, totalBytes)
    at(0)
    try {
      const told = `rebuilding index ${named} (${note.done.length + 1} of ${note.done.length + left.length - n})`
      const before = (await indexesOf(watcher, index.table)).filter((i) => i.transient).map((i) => i.oid)
      keep({ building: { table: index.table, name: index.name, before } })
      await rebuild(address, watcher, index, context, {
        at,
        phase: (phase) => context.say(phase ? `${told}: ${phase}` : told),
      })
      const now = (await indexesOf(watcher, index.table)).find((i) => nameOf(i) === named)
      keep({
        done: [...note.done, { index: named, bytesBefore: index.bytes, bytesAfter: now?.bytes ?? 0 }],
        building: null,
      })
    } catch (error) {
      const state = sqlState(error)
      // without the engine's word the connection is gone: nothing more can be asked
      if (state === null || state.startsWith('57P')) throw error
      await dropTransient(watcher, note, context)
      context.signal.throwIfAborted()
      const why = error instanceof Error ? error.message : String(error)
      keep({ building: null })
      // undefined_table, undefined_object: somebody dropped it
      if (state === '42P01' || state === '42704')
        skipped.push({ index: named, why: 'it was dropped meanwhile' })
      else failed.push({ index: named, why })
      context.log(`index ${named} was not rebuilt: ${why}`)
    }
    doneBytes += index.bytes
    context.worked(doneBytes, totalBytes)
  }
  if (failed.length > 0) throw incomplete(failed, note.done.length)
  for (const { index, why } of skipped) context.log(`index ${index} was left: ${why}`)
  return {
    rebuilt: note.done.length,
    bytesBefore: note.done.reduce((sum, d) => sum + d.bytesBefore, 0),
    bytesAfter: note.done.reduce((sum, d) => sum + d.bytesAfter, 0),
    skipped,
  }
}

const incomplete = (failed: { index: string; why: string }[], rebuilt: number) =>
  fault(
    'reindex.incomplete',
    `${failed.length === 1 ? '1 index was' : `${failed.length} indexes were`} not rebuilt`,
    {
      detail: `${failed
        .slice(0, 5)
        .map(({ index, why }) => `${index}: ${why}.`)
        .join(' ')}${failed.length > 5 ? ' More are in the log.' : ''} Rebuilt: ${rebuilt}.`,
      hint: 'The former indexes are still in use. If a unique index cannot be rebuilt, find the duplicate rows.',
    },
  )

/** Rebuilds one index over a connection of its own, so that a cancel ends this statement and nothing else. */
async function rebuild(
  address: EngineAddress,
  watcher: pg.Client,
  index: Index,
  context: TaskContext,
  tell: {
    at: (fraction: number) => void
    phase: (phase: string | null) => void
  },
): Promise<void> {
  await withEngine(
    address,
    async (client) => {
      const [own] = (await answered(client.query<{ pid: number }>('select pg_backend_pid() as pid'))).rows
      const pid = own?.pid
      const target = `${client.escapeIdentifier(index.schema)}.${client.escapeIdentifier(index.name)}`
      tell.phase(null)
      let over = false
      const statement = client.query(`REINDEX INDEX CONCURRENTLY ${target}`).finally(() => {
        over = true
      })
      const cancel = () => void watcher.query('select pg_cancel_backend($1)', [pid]).catch(() => {})
      context.signal.addEventListener('abort', cancel, { once: true })
      if (context.signal.aborted) cancel()
      let furthest = 0
      const watch = (async () => {
        while (!over) {
          const ours = (await indexesOf(watcher, index.table)).filter((i) => i.pid === pid)
          for (const i of ours) {
            furthest = Math.max(furthest, i.fraction ?? 0)
            if (!over) tell.phase(i.phase)
          }
          if (!over) tell.at(furthest)
          await Promise.race([statement.catch(() => {}), pause(WATCH_MS)])
        }
      })().catch((error) => {
        // the statement would wait for an engine that hangs
        abandon(client)
        throw error
      })
      try {
        // what the watch throws is why the statement ended, not the other way round
        const [ended, watched] = await Promise.allSettled([statement, watch])
        if (watched.status === 'rejected') throw watched.reason
        if (ended.status === 'rejected') throw ended.reason
      } finally {
        context.signal.removeEventListener('abort', cancel)
      }
    },
    0,
  )
}

/**
 * Drops what a rebuild of ours has left: on its table, not valid, named as PostgreSQL names it after that index, and not there
 * before. Another session's rebuild holds a lock on the table that this waits for.
 */
async function dropTransient(watcher: pg.Client, note: Note, context: TaskContext): Promise<void> {
  const { building } = note
  if (building === null) return
  try {
    const left = (await indexesOf(watcher, building.table)).filter(
      (i) =>
        i.transient &&
        !building.before.includes(i.oid) &&
        building.name.startsWith(i.name.replace(/_cc(new|old)\d*$/, '')),
    )
    for (const index of left) {
      const target = `${watcher.escapeIdentifier(index.schema)}.${watcher.escapeIdentifier(index.name)}`
      await answered(watcher.query(`DROP INDEX CONCURRENTLY ${target}`), DROP_MS)
      context.log(`dropped ${nameOf(index)}, which the rebuild had not finished`)
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    context.log(
      `what the rebuild of index ${building.name} has left, an index that is not valid, was not dropped: ${why}`,
    )
  }
}
