import { pipeline } from 'node:stream/promises'
import {
  FlashbackCounts,
  FlashbackMade,
  FlashbackMerged,
  FlashbackSwapped,
  FlashbackTime,
  fault,
  flashbackTimeOf,
  formatBytes,
  type MergeCounts,
  MISSING_MAX,
  momentBefore,
  OperationId,
} from '@floe/domain'
import type { RouterOutputs } from '@floe/web/api'
import { type Command, InvalidArgumentError } from 'commander'
import { submitOnce } from '../console/submit-once'
import { waitForOperation } from '../console/wait-for-operation'
import { moment, printResult, table, visible } from '../output'
import { carryOut } from './cluster'
import { findInstance, openConsole } from './find-instance'
import { type Submitting, submittingVerb, verb, wholeNumber } from './verb'

type Json = { json?: boolean }
type InDatabase = { database?: string }
type Tables = RouterOutputs['flashback']['tables']
type Result = RouterOutputs['flashback']['results'][number]
type Lost = RouterOutputs['flashback']['lost'][number]

const DATABASE = 'the database (default: the first that is not "postgres")'
const NO_WAIT = 'do not wait for the operation to end'

/** `10min`, `2h`, `90s`: that long ago. */
function ago(text: string): string {
  const [, count, unit] = text.match(/^(\d{1,6})\s?(s|min|h)$/) ?? []
  if (!count) throw new InvalidArgumentError('It must be a number of s, min or h, e.g. 10min.')
  const ms = Number(count) * { s: 1_000, min: 60_000, h: 3_600_000 }[unit as 's' | 'min' | 'h']
  return new Date(Date.now() - ms).toISOString()
}

function time(text: string): string {
  const parsed = FlashbackTime.safeParse(text)
  if (!parsed.success) throw new InvalidArgumentError(`It ${parsed.error.issues[0]?.message}.`)
  return text
}

type Moment = { at?: string; ago?: string }

/** The moment that one of the two options names. */
function momentOf(options: Moment): string {
  const { at } = options
  if ((at === undefined) === (options.ago === undefined))
    throw fault('usage.moment', 'a moment is required', { hint: 'Give either --at or --ago.' })
  return at ?? (options.ago as string)
}

const withMoment = (command: Command) =>
  command
    .option('--at <time>', 'the moment, with its time zone, e.g. 2026-11-23T23:40:00+01:00', time)
    .option('--ago <duration>', 'how long ago, e.g. 90s, 10min or 2h', ago)

/** One instance and the database that is meant. */
async function open(named: string, { database }: InDatabase) {
  const client = openConsole()
  const { instanceId, name } = await findInstance(client, named)
  const chosen =
    database ?? (await client.trpc.flashback.tables.query({ instanceId, database: null, limit: 1 })).database
  return { client, instanceId, name, database: chosen }
}
type Opened = Awaited<ReturnType<typeof open>>

/** A table by what a person typed, with its schema or without. */
export function oneTable(tables: Tables['tables'], wanted: string): Tables['tables'][number] {
  const whole = tables.filter((t) => `${t.schema}.${t.name}` === wanted)
  const found = whole.length > 0 ? whole : tables.filter((t) => t.name === wanted)
  const [first] = found
  if (found.length === 1 && first) return first
  if (found.length === 0)
    throw fault('flashback.table_not_found', `table "${wanted}" does not exist`, {
      hint: 'A table that was dropped is in "./floe flashback lost".',
    })
  throw fault('usage.table', `more than one table is named "${wanted}"`, {
    detail: `There are ${found.map((t) => `${t.schema}.${t.name}`).join(', ')}.`,
    hint: 'Name it with its schema.',
  })
}

async function findTable({ client, instanceId, database }: Opened, wanted: string) {
  const { tables } = await client.trpc.flashback.tables.query({
    instanceId,
    database,
    search: wanted.slice(0, 200),
    limit: 500,
  })
  const { oid, schema, name } = oneTable(tables, wanted)
  return { instanceId, database, table: oid, tableName: `${schema}.${name}` }
}

/** A result by its name, with its schema or without. */
async function findResult({ client, instanceId, database }: Opened, wanted: string): Promise<Result> {
  const all = await client.trpc.flashback.results.query({ instanceId, database })
  const found = all.filter(
    (r) => r.resultName === wanted || r.resultName.slice(r.resultName.indexOf('.') + 1) === wanted,
  )
  const [first] = found
  if (found.length === 1 && first) return first
  throw fault(
    'flashback.result_not_found',
    found.length === 0 ? `no flashback made table "${wanted}"` : `more than one result is named "${wanted}"`,
    { hint: `Run "./floe flashback results" for their names.` },
  )
}

const ofResult = ({ instanceId, database }: Opened, { result, resultName }: Result) => ({
  instanceId,
  database,
  result,
  resultName,
})

const rowsWords = (n: number) => `${n} ${n === 1 ? 'row' : 'rows'}`

function countsWords(result: Record<string, unknown>, operationId: string): string {
  const c = FlashbackCounts.parse(result)
  return [
    `rows then     ${c.rowsThen}`,
    `rows now      ${c.rowsNow}`,
    `the same      ${c.same}`,
    `removed       ${c.removed}`,
    `changed       ${c.keyColumns === null ? '– (the table has no key)' : c.changed}`,
    `added         ${c.added}`,
    `key           ${c.keyColumns?.join(', ') ?? '–'}`,
    `See some of them within 15 minutes: ./floe flashback rows ${operationId}`,
  ].join('\n')
}

const madeWords = (result: Record<string, unknown>, database: string): string => {
  const { resultName, rows, bytes, missing = [] } = FlashbackMade.parse(result)
  return [
    `Table ${resultName} of database "${database}" has ${rowsWords(rows)} (${formatBytes(bytes)}).`,
    ...missing,
    ...(missing.length < MISSING_MAX ? [] : ['What else is missing is in the operation’s log.']),
  ].join('\n')
}

/** Verbs that look: tables, activity, lost, results. */
function addLooks(flashback: Command): void {
  verb(
    flashback,
    'tables <name>',
    'list tables that can be flashed back',
    'Lists the tables of a database, the largest first, with when each was changed last as far as the WAL that was read contains it.',
  )
    .option('--database <name>', DATABASE)
    .option('--search <text>', 'only those with this in their name')
    .option('--limit <n>', 'how many', wholeNumber(1, 500), 50)
    .action(
      async (
        named: string,
        { json, search, limit, ...of }: Json & InDatabase & { search?: string; limit: number },
      ) => {
        const { client, instanceId, database } = await open(named, of)
        const seen = await client.trpc.flashback.tables.query({
          instanceId,
          database,
          search: search ?? '',
          limit,
        })
        printResult(json, seen, () =>
          [
            table(
              ['table', 'kind', 'owner', 'size', 'rows, about', 'changed', ''],
              seen.tables.map((t) => [
                `${t.schema}.${t.name}`,
                t.kind,
                t.owner,
                formatBytes(t.sizeBytes),
                t.rowsEstimate,
                t.lastChangedAt === null ? null : moment(t.lastChangedAt),
                t.whyNot ?? ' ',
              ]),
            ),
            `Database "${seen.database}": ${seen.tables.length} of ${seen.total}.`,
          ].join('\n'),
        )
      },
    )
  verb(
    flashback,
    'activity <name>',
    'show what happened to tables in the window',
    'Reads the WAL of the window for large changes, truncated, dropped and rewritten tables. It takes as long as that WAL takes to read.',
  )
    .option('--database <name>', DATABASE)
    .option('--table <table>', 'only of this table')
    .action(async (named: string, { json, ...of }: Json & InDatabase & { table?: string }) => {
      const opened = await open(named, of)
      const { client, instanceId, database } = opened
      const only = of.table === undefined ? null : (await findTable(opened, of.table)).table
      let seen = await client.trpc.flashback.activity.query({ instanceId, database, table: only })
      while (!seen.complete)
        seen = await client.trpc.flashback.activity.query({ instanceId, database, table: only })
      printResult(json, seen, () =>
        [
          seen.events.length === 0
            ? 'Nothing large happened.'
            : table(
                [
                  'when',
                  'table',
                  'what',
                  'inserted',
                  'updated',
                  'deleted',
                  'partitions',
                  'just before (--at)',
                ],
                seen.events.map((e) => [
                  moment(e.at),
                  e.tableName ?? `number ${e.table}`,
                  e.kind,
                  e.inserted,
                  e.updated,
                  e.deleted,
                  e.partitions ?? ' ',
                  flashbackTimeOf(momentBefore(e.at)),
                ]),
              ),
          `From ${moment(seen.coveredFrom)} to ${moment(seen.coveredTo)}.`,
          ...(seen.leastPartitionRows == null
            ? []
            : [`In a partition, changes of fewer than ${seen.leastPartitionRows} rows are not counted.`]),
        ].join('\n'),
      )
    })
  verb(
    flashback,
    'lost <name>',
    'list tables that were dropped, truncated or rewritten',
    'Lists tables whose former file is kept: they can be had back as they were just before ("flashback before-drop"), truncated and rewritten ones also as at any other moment ("flashback to").',
  )
    .option('--database <name>', DATABASE)
    .action(async (named: string, { json, ...of }: Json & InDatabase) => {
      const { client, instanceId, database } = await open(named, of)
      const lost = await client.trpc.flashback.lost.query({ instanceId, database })
      printResult(json, lost, () =>
        lost.length === 0
          ? `Nothing was dropped, truncated or rewritten in database "${database}", as far as it is kept.`
          : table(
              ['when', 'table', 'what', 'size', 'restorable since', 'position'],
              lost.map((l) => [
                moment(l.at),
                l.tableName,
                l.kind,
                l.sizeBytes === null ? null : formatBytes(l.sizeBytes),
                l.restorableSince === null ? null : moment(l.restorableSince),
                l.lsn,
              ]),
            ),
      )
    })
  verb(flashback, 'results <name>', 'list tables that flashbacks made')
    .option('--database <name>', DATABASE)
    .action(async (named: string, { json, ...of }: Json & InDatabase) => {
      const { client, instanceId, database } = await open(named, of)
      const results = await client.trpc.flashback.results.query({ instanceId, database })
      printResult(json, results, () =>
        results.length === 0
          ? `No flashback has left a table in database "${database}".`
          : table(
              ['result', 'of', 'as at', 'owner', 'size'],
              results.map((r) => [
                r.resultName,
                r.tableName,
                r.at === null ? null : moment(r.at),
                r.owner,
                r.sizeBytes === null ? null : formatBytes(r.sizeBytes),
              ]),
            ),
      )
    })
}

/** Verbs that make a table, or count what one would have. */
function addTables(flashback: Command): void {
  submittingVerb(
    flashback,
    'prepare <name>',
    'install what flashbacks need in a database',
    'Installs or updates the extension flashback_table in a database of the primary. Flashbacks do that themselves; the lists of lost tables and of activity need it before.',
  )
    .option('--database <name>', DATABASE)
    .option('--no-wait', NO_WAIT)
    .action(async (named: string, options: Submitting & InDatabase) => {
      const { client, instanceId, database } = await open(named, options)
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        client.trpc.flashback.prepare.mutate({ instanceId, database, idempotencyKey }),
      )
      await carryOut(
        client,
        started,
        options,
        ({ version, schema }) =>
          `Database "${database}" has flashback_table ${version} in schema "${schema}".`,
      )
    })
  withMoment(
    submittingVerb(
      flashback,
      'preview <name> <table>',
      'count what a flashback would bring back',
      'Compares the rows that a table had at a moment with those of now. Changes nothing, also on a standby.',
    ),
  )
    .option('--database <name>', DATABASE)
    .option('--no-wait', NO_WAIT)
    .action(async (named: string, wanted: string, options: Submitting & InDatabase & Moment) => {
      const at = momentOf(options)
      const opened = await open(named, options)
      const of = await findTable(opened, wanted)
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        opened.client.trpc.flashback.preview.mutate({ ...of, at, idempotencyKey }),
      )
      await carryOut(opened.client, started, options, (result) => countsWords(result, started.operationId))
    })
  withMoment(
    submittingVerb(
      flashback,
      'to <name> <table>',
      'make a table with the rows of a moment',
      'Makes a table with the rows that a table had at a moment, next to the present one, which nobody touches.',
    ),
  )
    .option('--as <result>', 'name of the table that is made (default: polar_flashback_ and its number)')
    .option('--database <name>', DATABASE)
    .option('--no-wait', NO_WAIT)
    .action(
      async (named: string, wanted: string, options: Submitting & InDatabase & Moment & { as?: string }) => {
        const at = momentOf(options)
        const opened = await open(named, options)
        const of = await findTable(opened, wanted)
        const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
          opened.client.trpc.flashback.to.mutate({ ...of, at, resultName: options.as, idempotencyKey }),
        )
        await carryOut(opened.client, started, options, (result) => madeWords(result, opened.database))
      },
    )
  submittingVerb(
    flashback,
    'before-drop <name> <table>',
    'flash back a table to before it was dropped, truncated or rewritten',
    'Makes a table with the rows that one had just before it was dropped, truncated or rewritten. A dropped table comes back under its former name if that name is free, with its columns, rows, keys, indexes, constraints and defaults, but without triggers, rules, policies and privileges; what could not be made is named.',
  )
    .option('--lsn <position>', 'which loss, where there are several of that name ("flashback lost")')
    .option('--as <result>', 'name of the table that is made')
    .option('--schema <schema>', 'where it is made (default: the schema that it was in)')
    .option('--database <name>', DATABASE)
    .option('--no-wait', NO_WAIT)
    .action(async (named: string, wanted: string, options: BeforeDrop) => {
      const { client, instanceId, database } = await open(named, options)
      const lost = await client.trpc.flashback.lost.query({ instanceId, database })
      const { table: oid, tableName, lsn, kind } = oneLoss(lost, wanted, options.lsn)
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        client.trpc.flashback.beforeDrop.mutate({
          instanceId,
          database,
          table: oid,
          tableName,
          lsn,
          lost: kind,
          resultName: options.as,
          resultSchema: options.schema,
          idempotencyKey,
        }),
      )
      await carryOut(client, started, options, (result) => madeWords(result, database))
    })
}

/**
 * The loss of a table that is meant: the one at a position, else the only drop of a table of that name, or where none was dropped
 * the only truncation or rewriting.
 */
export function oneLoss(lost: readonly Lost[], wanted: string, lsn: string | undefined): Lost {
  const named = lost.filter(
    (l) =>
      (l.tableName === wanted || l.tableName.slice(l.tableName.indexOf('.') + 1) === wanted) &&
      (lsn === undefined || l.lsn === lsn),
  )
  const drops = named.filter((l) => l.kind === 'dropped')
  const meant = drops.length > 0 ? drops : named
  const [first] = meant
  if (meant.length === 1 && first) return first
  if (meant.length === 0)
    throw fault('flashback.table_not_found', `no table "${wanted}" was lost, as far as it is kept`, {
      detail: 'None of that name was dropped, truncated or rewritten.',
      hint: 'Run "./floe flashback lost" for those that were.',
    })
  throw fault('usage.table', `table "${wanted}" was lost more than once`, {
    detail: meant.map((l) => `${l.tableName} was ${l.kind} at ${l.lsn} (${moment(l.at)})`).join(', '),
    hint: 'Choose one by --lsn.',
  })
}

type BeforeDrop = Submitting & InDatabase & { lsn?: string; as?: string; schema?: string }

type Merge = Submitting &
  InDatabase & {
    insertMissing?: true
    restoreChanged?: true
    deleteAdded?: true
    comparison?: string
    select?: number[]
    where?: string
    apply?: true
  }

const mergeWords = ({ inserted, restored, deleted }: MergeCounts): string =>
  `${rowsWords(inserted)} inserted, ${restored} restored, ${deleted} deleted`

function numbers(text: string): number[] {
  const found = text.split(',').map((part) => part.trim())
  if (!found.every((part) => /^\d{1,5}$/.test(part)))
    throw new InvalidArgumentError('It must be numbers as "flashback rows" prints them, e.g. 1,4,5.')
  return found.map((part) => Number(part) - 1)
}

/** Verbs on what was made: compare, merge, swap, drop. */
function addResults(flashback: Command): void {
  submittingVerb(
    flashback,
    'compare <name> <result>',
    'compare a result with its table',
    'Compares the rows of a result with those that its table has now. Changes nothing.',
  )
    .option('--database <name>', DATABASE)
    .option('--no-wait', NO_WAIT)
    .action(async (named: string, wanted: string, options: Submitting & InDatabase) => {
      const opened = await open(named, options)
      const found = await findResult(opened, wanted)
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        opened.client.trpc.flashback.compare.mutate({
          ...ofResult(opened, found),
          tableName: found.tableName,
          idempotencyKey,
        }),
      )
      await carryOut(opened.client, started, options, (result) => countsWords(result, started.operationId))
    })
  submittingVerb(
    flashback,
    'merge <name> <result>',
    'put rows of a result back into its table',
    'Counts what a merge would do. With --apply it does so, in one transaction and only if it still comes to the same counts. Triggers and constraints of the table apply. Others can read the table meanwhile, also while it is counted, but not write to it.',
  )
    .option('--insert-missing', 'insert rows that the table no longer has')
    .option('--restore-changed', 'give rows that were changed their former values')
    .option('--delete-added', 'delete rows that the table did not have then')
    .option('--comparison <operation>', 'the preview or comparison whose rows are selected')
    .option('--select <numbers>', 'only these rows, as "flashback rows" numbers them, e.g. 1,4,5', numbers)
    .option('--where <condition>', 'only rows that match, as an SQL condition on the columns (role admin)')
    .option('--apply', 'do it')
    .option('--database <name>', DATABASE)
    .action(async (named: string, wanted: string, options: Omit<Merge, 'wait'>) => {
      const opened = await open(named, options)
      await merge(opened, await findResult(opened, wanted), options)
    })
  submittingVerb(
    flashback,
    'swap <name> <result>',
    'exchange the rows of a result and its table',
    'Gives a table exactly the rows of a result, and the result those that the table had. Grants, views, foreign keys and indexes of the table stay.',
  )
    .requiredOption('--confirm <name>', 'the name of the instance, once more')
    .option('--database <name>', DATABASE)
    .option('--no-wait', NO_WAIT)
    .action(async (named: string, wanted: string, options: Submitting & InDatabase & { confirm: string }) => {
      const opened = await open(named, options)
      const found = await findResult(opened, wanted)
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        opened.client.trpc.flashback.swap.mutate({
          ...ofResult(opened, found),
          tableName: found.tableName,
          confirmName: options.confirm,
          idempotencyKey,
        }),
      )
      await carryOut(opened.client, started, options, (result) => {
        const { rowsBefore, rowsNow } = FlashbackSwapped.parse(result)
        return `Table ${found.tableName} has ${rowsWords(rowsNow)}, ${found.resultName} the ${rowsBefore} that it had.`
      })
    })
  submittingVerb(flashback, 'drop <name> <result>', 'drop a result')
    .option('--database <name>', DATABASE)
    .option('--no-wait', NO_WAIT)
    .action(async (named: string, wanted: string, options: Submitting & InDatabase) => {
      const opened = await open(named, options)
      const found = await findResult(opened, wanted)
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        opened.client.trpc.flashback.drop.mutate({ ...ofResult(opened, found), idempotencyKey }),
      )
      await carryOut(opened.client, started, options, () => `Table ${found.resultName} is dropped.`)
    })
}

/** Counts first; what is applied is what was counted, or nothing. */
async function merge(opened: Opened, found: Result, options: Omit<Merge, 'wait'>): Promise<void> {
  const { client } = opened
  const asked = {
    ...ofResult(opened, found),
    tableName: found.tableName,
    insertMissing: options.insertMissing ?? false,
    restoreChanged: options.restoreChanged ?? false,
    deleteAdded: options.deleteAdded ?? false,
    comparison: options.comparison === undefined ? undefined : operationIdOf(options.comparison),
    selected: options.select,
    condition: options.where,
  }
  const counted = await client.trpc.flashback.merge.mutate({ ...asked, dryRun: true })
  const dry = await waitForOperation(client, counted.operationId)
  const counts = FlashbackMerged.parse(dry.result)
  const { conflicts, ...expected } = counts
  const notInserted =
    conflicts > 0 ? [`Not inserted, because another row has their value: ${conflicts}.`] : []
  if (!options.apply) {
    printResult(options.json, { operationId: counted.operationId, applied: false, result: counts }, () =>
      [`A merge comes to ${mergeWords(counts)}.`, ...notInserted, 'Add --apply to do it.'].join('\n'),
    )
    return
  }
  const { operationId } = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
    client.trpc.flashback.merge.mutate({ ...asked, expected, dryRun: false, idempotencyKey }),
  )
  const done = await waitForOperation(client, operationId)
  const result = FlashbackMerged.parse(done.result)
  printResult(options.json, { operationId, applied: true, result }, () =>
    [`Table ${found.tableName}: ${mergeWords(result)}.`, ...notInserted].join('\n'),
  )
}

function operationIdOf(text: string): OperationId {
  const parsed = OperationId.safeParse(text)
  if (parsed.success) return parsed.data
  throw fault('usage.operation_id', `"${text}" is not the id of an operation`, {
    hint: 'A preview and a comparison print theirs.',
  })
}

/** Verbs that show rows to those who may see them: rows, export. */
function addRows(flashback: Command): void {
  verb(
    flashback,
    'rows <operation>',
    'show some rows of a preview, a comparison or a merge',
    'Shows sample rows of a preview or a comparison, or what the engine said of a flashback that failed, for 15 minutes after it. Each call is in the audit log; the rows are stored nowhere.',
  ).action(async (operation: string, { json }: Json) => {
    const rows = await openConsole().trpc.flashback.rows.mutate({ operationId: operationIdOf(operation) })
    printResult(json, rows, () => rowsWordsOf(rows))
  })
  submittingVerb(
    flashback,
    'export <name> <result>',
    'print the rows of a result as CSV',
    'Prints the rows of a result as CSV on standard output. Each export is in the audit log.',
  )
    .option('--database <name>', DATABASE)
    .action(async (named: string, wanted: string, options: Omit<Submitting, 'wait'> & InDatabase) => {
      const opened = await open(named, options)
      const { client } = opened
      const found = await findResult(opened, wanted)
      const { operationId } = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        client.trpc.flashback.export.mutate({ ...ofResult(opened, found), idempotencyKey }),
      )
      const { result } = await waitForOperation(client, operationId, { show: false })
      if (options.json) {
        const path = `/api/flashback/download?operation=${operationId}`
        printResult(true, { operationId, ...result, path }, () => '')
        return
      }
      const body = await client.get(`/api/flashback/download?operation=${operationId}`)
      await pipeline(body, process.stdout, { end: false })
    })
}

type Rows = RouterOutputs['flashback']['rows']

export function rowsWordsOf({ columns, samples, conflictExample }: Rows): string {
  const cells = (values: (string | null)[] | null) => (values ?? []).map((v) => v ?? 'NULL')
  const lines = samples.flatMap(({ kind, rowThen, rowNow }, i) => [
    ...(rowThen ? [[String(i + 1), kind, 'then', ...cells(rowThen)]] : []),
    ...(rowNow ? [[rowThen ? ' ' : String(i + 1), rowThen ? ' ' : kind, 'now', ...cells(rowNow)]] : []),
  ])
  return [
    ...(lines.length > 0 ? [table(['no.', 'row', 'as', ...columns], lines)] : ['There are no rows to show.']),
    ...(conflictExample === null ? [] : [`The engine said: ${visible(conflictExample)}`]),
  ].join('\n')
}

/** Verbs of one-click flashback. */
export function addFlashbackOfTables(flashback: Command): void {
  addLooks(flashback)
  addTables(flashback)
  addResults(flashback)
  addRows(flashback)
}
