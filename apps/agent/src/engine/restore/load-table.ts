import { randomBytes } from 'node:crypto'
import { fault, formatBytes, qualifiedName } from '@floe/domain'
import pg from 'pg'
import { connectEngine, type EngineAddress, sqlState } from '../process/connection'
import { CopyIn } from '../process/copy-in'
import { quietSettings } from '../process/quiet-settings'
import foreignInputSql from '../sql/foreign-input.sql'
import madeTableSql from '../sql/made-table.sql'
import ownTransactionSql from '../sql/own-transaction.sql'
import placeNowSql from '../sql/place-now.sql'
import typesNowSql from '../sql/types-now.sql'
import type { Work } from '../work'
import { dataFormat, type RestoredSession, spawnPsql } from './ask-restored'
import { targetTime } from './recovery-log'
import type { ColumnThen, TableThen } from './table-then'

/** Where the rows go: the table is in the schema of the former one, under a name that is free. */
export type Target = { schema: string; table: string; result: string }
export type Loaded = { rows: number; bytes: number; warnings: string[] }

const quoted = pg.escapeIdentifier
const LOCK_WAIT = '10s'
const WARNINGS_MAX = 25

/**
 * A session of the agent's own in the instance, in which nothing of the instance's settings decides what is made, no event
 * trigger runs, and no row shows in the server's log.
 */
const loadSettings = {
  event_triggers: 'off',
  session_replication_role: 'origin',
  default_transaction_isolation: 'read\\ committed',
  default_transaction_read_only: 'off',
  default_table_access_method: 'heap',
  default_tablespace: '',
  temp_tablespaces: '',
  default_toast_compression: 'pglz',
  array_nulls: 'on',
  standard_conforming_strings: 'on',
  // a backend whose agent was killed ends
  client_connection_check_interval: '500',
  lock_timeout: LOCK_WAIT,
  transaction_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  ...quietSettings,
  ...dataFormat,
}

const connect = (address: EngineAddress) =>
  connectEngine(address, {
    applicationName: 'floe restore',
    connectMs: 5_000,
    statementMs: 0,
    settings: { client_encoding: 'UTF8', ...loadSettings },
  })

type Place = {
  schema: number
  tableNow: number | null
  ownerNow: number | null
  ownerThen: number | null
  taken: boolean
}

/** Refuses what can be known to be refused before anything is restored. */
export async function refuseTarget(client: pg.Client, target: Target, owner: string | null): Promise<Place> {
  const { rows } = await client.query<Place>(placeNowSql, [target.schema, target.table, target.result, owner])
  const [place] = rows
  if (!place)
    throw fault('restore.no_schema', `schema ${quoted(target.schema)} does not exist`, {
      detail: 'The result is made in the schema of the same name.',
      hint: `Create it first: CREATE SCHEMA ${quoted(target.schema)}. Catalogs are not restored.`,
    })
  if (place.taken) throw taken(target)
  return place
}

const taken = (target: Target) =>
  fault('restore.name_taken', `${qualifiedName(target.schema, target.result)} exists already`, {
    hint: 'Drop or rename it, or give another name for the result.',
  })

/**
 * Copies the table out of the restored engine into a new one of the instance, in one transaction. It is made and filled in
 * a schema that nobody else sees before the end, so that no name on the way can be moved to something else; types are checked
 * by what they are. `beforeCommit` is told what a run after a kill can find out the outcome by.
 */
export async function loadTable(
  address: EngineAddress,
  { then, session, target, at }: { then: TableThen; session: RestoredSession; target: Target; at: string },
  context: Work & { beforeCommit: (made: Made & { loaded: Loaded }) => void },
): Promise<Loaded> {
  const client = await connect(address)
  const { processID: pid } = client as unknown as { processID: number }
  const cancel = () => void cancelSession(address, pid).catch(() => {})
  context.signal.addEventListener('abort', cancel, { once: true })
  try {
    const place = await refuseTarget(client, target, then.owner)
    const owner = place.ownerNow ?? place.ownerThen
    if (owner === null)
      throw fault(
        'restore.no_owner',
        `the table has no owner here: role ${quoted(then.owner)} does not exist`,
        {
          hint: `Create the role, or a table ${qualifiedName(target.schema, target.table)} with the owner that is wanted.`,
        },
      )
    const { columns, warnings } = await columnsNow(client, then.columns)
    await client.query('begin')
    const room = quoted(`floe_restore_${randomBytes(8).toString('hex')}`)
    const made = `${room}.${quoted(target.result)}`
    await client.query(`create schema ${room}`)
    await client.query(`create table ${made} (${columns})`)
    const [{ oid }] = await ask<{ oid: number }>(client, 'select $1::regclass::oid as oid', [made])
    const [foreign] = (await client.query<{ name: string }>(foreignInputSql, [oid])).rows
    if (foreign) throw changedMeanwhile(`the type of column ${quoted(foreign.name)}`)
    const rows = await copyRows(client, made, { then, session }, context)
    const [{ bytes, role }] = await ask<{ bytes: number; role: string }>(
      client,
      'select pg_table_size($1::oid) as bytes, (select rolname from pg_roles where oid = $2) as role',
      [oid, owner],
    )
    await client.query(`alter table ${made} owner to ${quoted(role)}`)
    await revokeAll(client, made, oid)
    const comment = commentOf(place, then, target, at)
    await client.query(`comment on table ${made} is ${pg.escapeLiteral(comment)}`)
    await client.query(`alter table ${made} set schema ${quoted(target.schema)}`)
    await client.query(`drop schema ${room}`)
    const [found] = await ask<{ schema: number; owner: number; more: boolean }>(client, madeTableSql, [oid])
    if (found.schema !== place.schema || found.owner !== owner || found.more)
      throw changedMeanwhile('its schema, its owner or its grants')
    const loaded = { rows, bytes, warnings }
    const [{ xid, timeline }] = await ask<{ xid: string; timeline: string }>(client, ownTransactionSql, [])
    context.signal.throwIfAborted()
    context.signal.removeEventListener('abort', cancel)
    context.beforeCommit({ xid, timeline, oid, loaded })
    await client.query('commit')
    return loaded
  } catch (error) {
    await rollBack(client)
    context.signal.throwIfAborted()
    const state = sqlState(error)
    // duplicate_table, duplicate_object
    if (state === '42P07' || state === '42710') throw taken(target)
    // lock_not_available
    if (state === '55P03')
      throw fault('restore.locked', 'another session keeps the table from being made', {
        detail: `A lock of it was waited for ${LOCK_WAIT}.`,
        hint: 'End that session, then try again. Nothing was made.',
      })
    throw error
  } finally {
    context.signal.removeEventListener('abort', cancel)
    await client.end().catch(() => {})
  }
}

/** What waits for a lock hears of a cancel only so. */
async function cancelSession(address: EngineAddress, pid: number): Promise<void> {
  const client = await connect(address)
  try {
    await client.query('select pg_cancel_backend($1)', [pid])
  } finally {
    await client.end().catch(() => {})
  }
}

const ask = async <T extends object>(
  client: pg.Client,
  sql: string,
  values: unknown[],
): Promise<[T, ...T[]]> => (await client.query<T>(sql, values)).rows as [T, ...T[]]

const changedMeanwhile = (what: string) =>
  fault('restore.changed_meanwhile', `${what} changed while the table was copied`, {
    hint: 'Nothing was made. Try again.',
  })

/** A connection that does not answer any more is closed, which ends its transaction too. */
async function rollBack(client: pg.Client): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      ;(client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
      resolve()
    }, 10_000)
  })
  await Promise.race([client.query('rollback').catch(() => {}), late])
  clearTimeout(timer)
}

type Now = { type: string | null; collation: string | null }

/** How the columns are declared: as they were where that is safe, else with the base type of a domain, else as text. */
async function columnsNow(
  client: pg.Client,
  then: readonly ColumnThen[],
): Promise<{ columns: string; warnings: string[] }> {
  const asked = then.map((c, n) => ({ ...c, n }))
  const { rows } = await client.query<Now>(typesNowSql, [JSON.stringify(asked)])
  const warnings: string[] = []
  const columns = then.map((c, n) => {
    const { type, collation } = rows[n] as Now
    if (type === null)
      warnings.push(
        `Column ${quoted(c.name)} is text: its type was ${c.declared}, which is not the same here.`,
      )
    else if (c.domains.length > 0)
      warnings.push(
        `Column ${quoted(c.name)} has the base type ${type} of its domain ${c.domains.join(', ')}.`,
      )
    return `${quoted(c.name)} ${type ?? 'text'}${collation ? ` collate pg_catalog.${collation}` : ''}`
  })
  return { columns: columns.join(', '), warnings: atMost(warnings) }
}

/** As much as a person reads: how much there is, a stranger says. */
function atMost(all: string[]): string[] {
  const warnings = all.map((words) => (words.length > 1_000 ? `${words.slice(0, 1_000)}…` : words))
  const more = warnings.length - WARNINGS_MAX
  return more > 0
    ? [...warnings.slice(0, WARNINGS_MAX), `${more} more columns are not as they were.`]
    : warnings
}

/** Default privileges of whoever may have granted something to somebody. */
async function revokeAll(client: pg.Client, table: string, oid: number): Promise<void> {
  const { rows } = await client.query<{ grantee: string | null }>(
    `select distinct case when a.grantee <> 0 then a.grantee::regrole::text end as grantee
       from pg_class c, aclexplode(c.relacl) a where c.oid = $1 and a.grantee <> c.relowner`,
    [oid],
  )
  // regrole is quoted where it has to be
  for (const { grantee } of rows)
    await client.query(`revoke all on table ${table} from ${grantee ?? 'public'} cascade`)
}

/** The rows go from one engine to the other as they come; the slower one decides how fast. */
async function copyRows(
  client: pg.Client,
  made: string,
  { then, session }: { then: TableThen; session: RestoredSession },
  context: Work,
): Promise<number> {
  const names = then.columns.map((c) => quoted(c.name)).join(', ')
  const from = `${then.kind === 'r' ? 'only ' : ''}${quoted(then.schema)}.${quoted(then.name)}`
  const child = spawnPsql(session, [
    ...['-v', 'VERBOSITY=sqlstate', '-c', `copy (select ${names} from ${from}) to stdout`],
  ])
  child.stdin.end()
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (said.length < 4_096) said += text
  })
  const ended = new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null))
    child.once('close', resolve)
  })
  const kill = () => void child.kill('SIGKILL')
  const aborted = new Promise<never>((_resolve, reject) => {
    context.signal.addEventListener('abort', () => reject(context.signal.reason), { once: true })
  })
  aborted.catch(kill)
  const copy = client.query(new CopyIn(`copy ${made}${names === '' ? '' : ` (${names})`} from stdin`))
  try {
    let bytes = 0
    context.worked(0, null)
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      context.signal.throwIfAborted()
      await Promise.race([copy.write(chunk), aborted])
      bytes += chunk.length
      context.worked(bytes, null)
    }
    const status = await ended
    context.signal.throwIfAborted()
    if (status !== 0)
      throw fault('restore.table_not_read', 'the table could not be read from the restored backup', {
        detail: /ERROR:\s+([0-9A-Z]{5})/.exec(said)
          ? `The engine ended with SQLSTATE ${/ERROR:\s+([0-9A-Z]{5})/.exec(said)?.[1]}.`
          : `psql ended with status ${status ?? 'unknown'}.`,
        hint: 'The backup may be damaged.',
      })
    const rows = await Promise.race([copy.end(), aborted])
    context.log(`copied ${rows} rows, ${formatBytes(bytes)} as text`)
    return rows
  } catch (error) {
    kill()
    copy.giveUp().catch(() => {})
    throw withoutRows(error)
  }
}

/** What the server says of a value may show the value: only the kind of its error is reported. */
function withoutRows(error: unknown): unknown {
  const state = sqlState(error)
  if (state === null) return error
  if (state === '53100')
    return fault('restore.disk_full', 'the disk became full while the table was copied', {
      hint: 'Free space, then try again. Nothing of the table is left.',
    })
  const where = /, line (\d+)/.exec((error as { where?: string }).where ?? '')?.[1]
  return fault('restore.table_not_loaded', 'the instance did not take a row of the restored table', {
    detail: `It ended with SQLSTATE ${state}${where ? ` at row ${where}` : ''}.`,
  })
}

/** What a transaction that is about to be committed is found by: its number, which counts on its timeline only, and the table. */
export type Made = { xid: string; timeline: string; oid: number }

/** How a transaction of an earlier run ended, and whether what it made is there under its name. */
export async function findMade(
  address: EngineAddress,
  { xid, timeline, oid }: Made,
  { result }: Target,
): Promise<'committed' | 'in progress' | 'none'> {
  const client = await connect(address)
  try {
    const [seen] = await ask<{ timeline: string | null; status: string | null; there: boolean }>(
      client,
      `select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as timeline, pg_xact_status($1::xid8) as status,
              exists (select from pg_class where oid = $2 and relname = $3) as there`,
      [xid, oid, result],
    )
    if (seen.timeline === timeline && seen.status === 'in progress') return 'in progress'
    return seen.there && (seen.status === 'committed' || seen.timeline !== timeline) ? 'committed' : 'none'
  } catch (error) {
    // 22023: a number that no transaction has had yet; the engine has lost that one in a crash
    if (sqlState(error) === '22023') return 'none'
    throw error
  } finally {
    await client.end().catch(() => {})
  }
}

/** Of a table that is there, the comment that has its results compared and merged as those of flashbacks are. */
function commentOf(place: Place, then: TableThen, { schema, table }: Target, at: string): string {
  const name = [schema, table].map((word) => `"${word.replaceAll('"', '""')}"`).join('.')
  const how = 'restored from a base backup'
  return place.tableNow === null
    ? `${name} as of ${targetTime(at)} ${how}`
    : `${name} as of ${targetTime(at)} (table ${place.tableNow}, columns ${then.attributes}, ${how})`
}

/** The early look at the target, over a session of its own. */
export async function checkTarget(address: EngineAddress, target: Target): Promise<void> {
  const client = await connect(address)
  try {
    const [{ recovering }] = await ask<{ recovering: boolean }>(
      client,
      'select pg_is_in_recovery() as recovering',
      [],
    )
    if (recovering)
      throw fault('instance.is_standby', 'the instance is a standby', { hint: 'Name the primary.' })
    await refuseTarget(client, target, null)
  } finally {
    await client.end().catch(() => {})
  }
}
