import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { flashbackTimeOf, millisecondsOf, momentBefore } from '@floe/domain'
import { waitUntil } from '@floe/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture, asInstanceId } from './agent-fixture'

let f: AgentFixture
let id: string
/** A superuser's, a stranger's and an observer's session, all of database shop. */
let shop: pg.Client
let port: number

beforeAll(async () => {
  f = await AgentFixture.start(2)
  id = await f.createRunning({
    settings: { polar_enable_flashback_log: 'on', polar_enable_fast_recovery_area: 'on' },
  })
  await f.query(id, `create role owner login password 'open sesame'`)
  await f.query(id, 'create database shop owner owner')
  port = (await f.observed(id))?.port as number
  shop = await session('postgres')
  await f.query(id, 'checkpoint')
  await waitUntil('the log has a window', async () => {
    const [log] = (await f.query(id, 'select state from polar_stat_flashback_log')) as { state: string }[]
    return log?.state === 'on'
  })
})
afterAll(async () => {
  await shop?.end()
  await f?.remove()
})

async function session(user: string, database = 'shop'): Promise<pg.Client> {
  const client = new pg.Client({ host: '127.0.0.1', port, user, password: 'open sesame', database })
  client.on('error', () => {})
  await client.connect()
  return client
}
const sql = async (text: string) => (await shop.query(text)).rows
const inShop = () => ({ instanceId: asInstanceId(id), database: 'shop' })

/** A table of the owner's with 1,000 rows, and the moment at which it had them. */
async function tableOf(name: string): Promise<{ table: number; at: string }> {
  await sql(`create table ${name} (id int primary key, v text);
    insert into ${name} select n, 'then ' || n from generate_series(1, 1000) n;
    alter table ${name} owner to owner`)
  const [row] = await sql(`select '${name}'::regclass::oid::int8 as oid, pg_sleep(0.05)`)
  const [moment] = await sql(`select to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.USOF') as at`)
  await sql('select pg_sleep(0.05)')
  return { table: Number(row?.oid), at: moment?.at }
}
const results = async (table: number) =>
  (
    await sql(
      `select relname from pg_class where relname like 'polar_flashback_${table}%' and relkind = 'r' order by 1`,
    )
  ).map((r) => r.relname)

/** Commits of others than the tests wait for a standby that never answers. */
async function withWaitingCommits(run: () => Promise<void>) {
  await sql('set synchronous_commit = local')
  await sql(`alter system set synchronous_standby_names = 'nobody'`)
  await sql('select pg_reload_conf()')
  try {
    await run()
  } finally {
    await sql('alter system reset synchronous_standby_names')
    await sql('select pg_reload_conf()')
    await sql('reset synchronous_commit')
  }
}
const commitWaits = () =>
  waitUntil('its commit waits', async () => {
    const rows = await sql(`select from pg_stat_activity where usename = 'floe' and wait_event = 'SyncRep'`)
    return rows.length > 0
  })

describe('a table of a moment', () => {
  test('is made beside the present one in a database that lacked the extension, which goes where no stranger creates', async () => {
    const of = await tableOf('account')
    await sql('delete from account where id <= 400')
    const made = await f.must({ kind: 'flashback-table', ...inShop(), ...of, resultName: null })
    expect(made).toMatchObject({ resultName: `public.polar_flashback_${of.table}`, rows: 1000 })
    expect(await sql(`select count(*)::int from polar_flashback_${of.table}`)).toEqual([{ count: 1000 }])
    expect(await sql('select count(*)::int from account')).toEqual([{ count: 600 }])
    // the database's owner may create in public
    expect(
      await sql(`select n.nspname, pg_get_userbyid(n.nspowner) as owner from pg_extension e
                   join pg_namespace n on n.oid = e.extnamespace where extname = 'flashback_table'`),
    ).toEqual([{ nspname: 'polar_flashback', owner: 'floe' }])
    // a second one has a name of its own
    const second = await f.must({ kind: 'flashback-table', ...inShop(), ...of, resultName: null })
    expect(second.resultName).toBe(`public.polar_flashback_${of.table}_2`)
    const named = await f.must({ kind: 'flashback-table', ...inShop(), ...of, resultName: 'Odd "name' })
    expect(named.resultName).toBe('public.Odd "name')
  })

  test('before the window: refused with the nearest moment, and nothing is made', async () => {
    const { table } = await tableOf('early')
    const { state, fault } = await f.run({
      kind: 'flashback-table',
      ...inShop(),
      table,
      at: '2020-01-01T00:00:00Z',
      resultName: null,
    })
    expect([state, fault?.code]).toEqual(['failed', 'flashback.not_possible'])
    expect(fault?.detail).toMatch(/^The nearest moment that works is \d{4}-/)
    expect(await results(table)).toEqual([])
  })

  test('of a database or a table that is not there: refused by name', async () => {
    const of = { table: 99_999_999, at: new Date().toISOString(), resultName: null }
    const nowhere = await f.run({ kind: 'flashback-table', ...inShop(), database: 'nowhere', ...of })
    expect(nowhere.fault?.code).toBe('database.not_found')
    const nothing = await f.run({ kind: 'flashback-table', ...inShop(), ...of })
    expect(nothing.state).toBe('failed')
    expect(nothing.fault?.code).not.toBe('internal')
  })

  test('is made once, wherever the agent is killed', async () => {
    const of = await tableOf('killed')
    for (const when of ['working', 'noted'] as const) {
      const before = await results(of.table)
      const holder = await session('postgres')
      await holder.query('begin; lock table killed in access exclusive mode')
      const key = await f.begin({ kind: 'flashback-table', ...inShop(), ...of, resultName: null })
      if (when === 'working')
        await waitUntil('it waits for the lock', async () => {
          const rows = await sql(
            `select from pg_stat_activity where usename = 'floe' and datname = 'shop' and wait_event_type = 'Lock'`,
          )
          return rows.length > 0
        })
      else await holder.query('rollback')
      await f.agent.end('SIGKILL')
      await holder.query('rollback').catch(() => {})
      await holder.end()
      await f.agent.start()
      const { state, fault } = await f.ended(key)
      expect([state, fault]).toEqual(['succeeded', null])
      expect(await results(of.table)).toHaveLength(before.length + 1)
    }
  })

  test('is made once, although the agent is killed while its commit waits for a standby that never answers', async () => {
    const of = await tableOf('committing')
    await withWaitingCommits(async () => {
      const key = await f.begin({ kind: 'flashback-table', ...inShop(), ...of, resultName: null })
      await commitWaits()
      await f.agent.end('SIGKILL')
      await f.agent.start()
      const { state, fault, result } = await f.ended(key)
      expect([state, fault]).toEqual(['succeeded', null])
      expect(result).toMatchObject({ resultName: `public.polar_flashback_${of.table}`, rows: 1000 })
      expect(await results(of.table)).toEqual([`polar_flashback_${of.table}`])
    })
  })

  test('a cancel leaves nothing', async () => {
    const of = await tableOf('cancelled')
    const holder = await session('postgres')
    await holder.query('begin; lock table cancelled in access exclusive mode')
    const key = await f.begin({ kind: 'flashback-table', ...inShop(), ...of, resultName: null })
    await waitUntil('it waits for the lock', async () => {
      const rows = await sql(
        `select from pg_stat_activity where usename = 'floe' and datname = 'shop' and wait_event_type = 'Lock'`,
      )
      return rows.length > 0
    })
    await f.task.task.cancel.mutate(key)
    expect((await f.ended(key)).state).toBe('cancelled')
    await holder.query('rollback')
    await holder.end()
    expect(await results(of.table)).toEqual([])
  })
})

test('tables are listed by size and by name, with why one cannot be flashed back, beside a lock on one of them', async () => {
  await sql('create unlogged table fleeting (n int); create table parted (n int) partition by range (n)')
  await sql('create table parted_1 partition of parted for values from (0) to (10)')
  const holder = await session('postgres')
  await holder.query('begin; lock table account in access exclusive mode')
  const ask = (more: object) =>
    f.read.flashback.tables.query({ instanceId: asInstanceId(id), database: 'shop', ...more })
  const all = await ask({})
  await holder.query('rollback')
  await holder.end()
  expect(all.databases).toEqual(['shop', 'postgres'])
  expect(all.total).toBe(all.tables.length)
  expect(all.tables.find((t) => t.name === 'account')).toMatchObject({
    schema: 'public',
    owner: 'owner',
    kind: 'table',
    whyNot: null,
  })
  expect(all.tables.find((t) => t.name === 'account')?.sizeBytes).toBeGreaterThan(8_192)
  expect(all.tables.find((t) => t.name === 'fleeting')?.whyNot).toMatch(/unlogged/)
  expect(all.tables.find((t) => t.name === 'parted')).toMatchObject({ kind: 'partitioned' })
  const some = await ask({ search: 'PARTED', limit: 1 })
  expect([some.total, some.tables.map((t) => t.name)]).toEqual([2, ['parted']])
  // a whole name comes before others that begin with it, however large they are
  await sql(`create table log (n int); create table log_of_all as select n from generate_series(1, 1000) n`)
  for (const search of ['log', 'public.log'])
    expect((await ask({ search, limit: 1 })).tables.map((t) => t.name)).toEqual(['log'])
  expect(
    (await f.read.flashback.tables.query({ instanceId: asInstanceId(id), database: null })).database,
  ).toBe('shop')
})

const rowsOf = (operationId: string) => f.read.flashback.rows.query({ operationId: operationId as never })
const merging = {
  insertMissing: true,
  restoreChanged: false,
  deleteAdded: false,
  selection: null,
  expected: null,
}

/** A table that has lost 400 rows, has 10 others changed and 5 added, and the result of a flashback of it. */
async function damaged(name: string) {
  const of = await tableOf(name)
  await sql(`delete from ${name} where id <= 400; update ${name} set v = 'now' where id > 990;
    insert into ${name} select n, 'new' from generate_series(2001, 2005) n`)
  const made = await f.must({ kind: 'flashback-table', ...inShop(), ...of, resultName: null })
  const result = {
    ...inShop(),
    result: made.result,
    resultName: made.resultName,
    tableName: `public.${name}`,
  }
  return { ...of, name, result }
}

describe('the rows of then and of now', () => {
  test('are counted, by their key; some are kept for whoever asks for them within 15 minutes', async () => {
    const { table, at, result } = await damaged('counted')
    const counts = { rowsThen: 1000, rowsNow: 605, same: 590, removed: 400, changed: 10, added: 5 }
    for (const task of [
      { kind: 'preview-flashback', ...inShop(), table, at } as const,
      { kind: 'compare-flashback', ...result } as const,
    ]) {
      const key = await f.begin(task)
      const status = await f.ended(key)
      expect([status.fault, status.result]).toEqual([null, { ...counts, keyColumns: ['id'] }])
      const rows = await rowsOf(key.operationId)
      expect([rows.columns, rows.keyColumns]).toEqual([['id', 'v'], ['id']])
      const of = (kind: string) => rows.samples.filter((s) => s.kind === kind)
      expect([of('removed').length, of('changed').length, of('added').length]).toEqual([50, 10, 5])
      expect(of('changed')[0]).toMatchObject({ rowNow: [expect.anything(), 'now'] })
      expect(of('added')[0]?.rowThen).toBeNull()
      // what the agent answers of the task has no row
      expect(JSON.stringify(status)).not.toContain('then 1')
    }
    await expect(rowsOf('00000000-0000-4000-8000-000000000000')).rejects.toThrow('no longer kept')
  })

  test('of an agent that was started again are gone, which it says', async () => {
    const { table, at } = await tableOf('forgotten')
    const key = await f.begin({ kind: 'preview-flashback', ...inShop(), table, at })
    expect((await f.ended(key)).state).toBe('succeeded')
    await f.agent.end('SIGKILL')
    await f.agent.start()
    await expect(rowsOf(key.operationId)).rejects.toThrow('no longer kept')
  })
})

describe('a merge', () => {
  const rowsNow = async (name: string) => (await sql(`select count(*)::int as n from ${name}`))[0]?.n

  test('dry counts and changes nothing; then it does what was counted', async () => {
    const { name, result } = await damaged('merged')
    const all = { ...result, ...merging, restoreChanged: true, deleteAdded: true }
    const dry = await f.must({ kind: 'merge-flashback', ...all, dryRun: true })
    expect(dry).toEqual({ inserted: 400, restored: 10, deleted: 5, conflicts: 0 })
    expect(await rowsNow(name)).toBe(605)
    const { conflicts: _, ...expected } = dry
    expect(await f.must({ kind: 'merge-flashback', ...all, expected, dryRun: false })).toEqual(dry)
    expect(
      await sql(`select count(*)::int, count(*) filter (where v = 'now')::int as now from ${name}`),
    ).toEqual([{ count: 1000, now: 0 }])
  })

  test('that would come to anything else than was counted changes nothing', async () => {
    const { name, result } = await damaged('moved_on')
    await sql(`insert into ${name} values (1, 'somebody')`)
    const { state, fault } = await f.run({
      kind: 'merge-flashback',
      ...result,
      ...merging,
      expected: { inserted: 400, restored: 0, deleted: 0 },
      dryRun: false,
    })
    expect([state, fault?.code]).toEqual(['failed', 'flashback.other_rows'])
    expect(await rowsNow(name)).toBe(606)
  })

  test('of selected rows touches those only; of rows that are no longer kept it is refused', async () => {
    const { name, result } = await damaged('selected')
    const key = await f.begin({ kind: 'compare-flashback', ...result })
    await f.ended(key)
    const { samples } = await rowsOf(key.operationId)
    const chosen = samples.flatMap((s, i) => (s.kind === 'removed' ? [i] : [])).slice(0, 3)
    const of = (comparison: string, selected: number[]) => ({
      kind: 'merge-flashback' as const,
      ...result,
      ...merging,
      selection: { comparison: comparison as never, selected },
      dryRun: false,
    })
    expect(await f.must(of(key.operationId, chosen))).toMatchObject({ inserted: 3 })
    const ids = chosen.map((i) => samples[i]?.rowThen?.[0]).join(', ')
    expect(await sql(`select count(*)::int as n from ${name} where id in (${ids})`)).toEqual([{ n: 3 }])
    expect(await rowsNow(name)).toBe(608)
    const refused = await f.run(of('00000000-0000-4000-8000-000000000000', [0]))
    expect(refused.fault?.code).toBe('flashback.rows_gone')
  })

  test('of rows that match touches those only, as the owner, and says what is wrong with a condition', async () => {
    const { name, result } = await damaged('matching')
    const where = (condition: string, dryRun = true) =>
      ({
        kind: 'merge-flashback',
        ...result,
        ...merging,
        selection: { kind: 'matching', condition },
        dryRun,
      }) as const
    expect(await f.must(where('id <= 10'))).toMatchObject({ inserted: 10 })
    expect(await f.must(where('id <= 10', false))).toMatchObject({ inserted: 10 })
    expect(await rowsNow(name)).toBe(615)
    const wrong = await f.run(where('nonsense'))
    expect(wrong.fault?.message).toBe('column "nonsense" does not exist')
    // a cast of a value would say it
    const telling = await f.run(where('v::int > 0'))
    expect(telling.state).toBe('failed')
    expect(JSON.stringify(telling)).not.toMatch(/then \d/)
    await sql(`create function whoami() returns text language sql as 'select current_user::text';
      alter function whoami() owner to owner`)
    expect(await f.must(where(`public.whoami() = 'owner' and id <= 12`))).toMatchObject({ inserted: 2 })
  })

  test('whose agent is killed while its commit waits is not made twice', async () => {
    const { name, result } = await damaged('once')
    // a second merge would be seen in this count
    await sql(`create table seen (n int);
      create function note() returns trigger language plpgsql as
      $$ begin insert into public.seen values (1); return null; end $$;
      create trigger note after insert on ${name} for each row execute function note();
      alter table seen owner to owner; alter function note() owner to owner`)
    await withWaitingCommits(async () => {
      const key = await f.begin({ kind: 'merge-flashback', ...result, ...merging, dryRun: false })
      await commitWaits()
      await f.agent.end('SIGKILL')
      await f.agent.start()
      const ended = await f.ended(key)
      expect([ended.state, ended.fault]).toEqual(['succeeded', null])
      expect(ended.result).toMatchObject({ inserted: 400 })
      expect(await sql('select count(*)::int as n from seen')).toEqual([{ n: 400 }])
    })
  })

  test('runs the owner’s trigger as the owner, and its words, which name a row, stay in memory', async () => {
    const { name, result } = await damaged('trapped')
    await sql(`create function trap() returns trigger language plpgsql as
      $$ begin
        if (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
          execute 'create role taken superuser';
        end if;
        raise exception 'row % is not for you as %', new.v, current_user;
      end $$;
      alter function trap() owner to owner;
      create trigger trap before insert on ${name} for each row execute function trap()`)
    const key = await f.begin({ kind: 'merge-flashback', ...result, ...merging, dryRun: false })
    const status = await f.ended(key)
    expect(status.state).toBe('failed')
    expect(JSON.stringify(status)).not.toContain('not for you')
    expect((await rowsOf(key.operationId)).conflictExample).toMatch(/^row then \d+ is not for you as owner/)
    expect(await sql(`select from pg_roles where rolname = 'taken'`)).toEqual([])
  })
})

describe('the words of the engine, which may have values of rows,', () => {
  const secret = (n: number) => `secret-of-row-${n}`
  /** All that the instance has written down. */
  const serverLog = () => {
    const directory = join(f.installation.instancesDirectory, id, 'log')
    return readdirSync(directory)
      .map((name) => readFileSync(join(directory, name), 'utf8'))
      .join('')
  }
  /** A table whose rows of then are forbidden now, and a result with them. */
  const forbidden = async (name: string) => {
    const of = await tableOf(name)
    await sql(`update ${name} set v = 'secret-of-row-' || id`)
    const [moment] = await sql(
      `select pg_sleep(0.05), to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.USOF') as at`,
    )
    await sql(`select pg_sleep(0.05); delete from ${name} where id <= 400; update ${name} set v = 'now'`)
    const made = await f.must({
      kind: 'flashback-table',
      ...inShop(),
      table: of.table,
      at: moment?.at,
      resultName: null,
    })
    await sql(`alter table ${name} add constraint only_present check (v not like 'secret%')`)
    return {
      ...inShop(),
      result: made.result,
      resultName: made.resultName,
      tableName: `public.${name}`,
    }
  }

  test('are kept for those who may see rows, of a merge and of a swap that failed', async () => {
    const result = await forbidden('refused')
    for (const task of [
      { kind: 'merge-flashback', ...result, ...merging, dryRun: true } as const,
      { kind: 'swap-flashback', ...result } as const,
    ]) {
      const key = await f.begin(task)
      const status = await f.ended(key)
      expect([task.kind, status.state, status.fault?.code]).toEqual([
        task.kind,
        'failed',
        'flashback.refused',
      ])
      expect(JSON.stringify(status)).not.toContain('secret')
      expect((await rowsOf(key.operationId)).conflictExample).toContain('only_present')
    }
  })

  test('are not in its log, whatever is to be logged', async () => {
    const result = await forbidden('unlogged_words')
    await sql(`create function chat() returns trigger language plpgsql as
      $$ begin raise warning 'row %', new.v; return new; end $$;
      create trigger chat before insert on unlogged_words for each row execute function chat()`)
    const settings = {
      log_statement: 'all',
      log_min_messages: 'debug1',
      log_min_error_statement: 'debug1',
      log_min_duration_statement: '0',
      log_error_verbosity: 'verbose',
      log_parameter_max_length: '-1',
      log_parameter_max_length_on_error: '-1',
    }
    for (const [name, value] of Object.entries(settings)) await sql(`alter system set ${name} = '${value}'`)
    await sql('select pg_reload_conf()')
    try {
      // it is logged where nobody has said otherwise
      const other = await session('owner')
      await expect(
        other.query('insert into unlogged_words values ($1, $2)', [5000, secret(5000)]),
      ).rejects.toThrow('only_present')
      await other.end()
      await waitUntil('the log has the row of another session', async () =>
        serverLog().includes(secret(5000)),
      )
      for (const dryRun of [true, false])
        expect((await f.run({ kind: 'merge-flashback', ...result, ...merging, dryRun })).state).toBe('failed')
      expect((await f.run({ kind: 'swap-flashback', ...result })).state).toBe('failed')
      await sql('alter table unlogged_words drop constraint only_present')
      expect(await f.must({ kind: 'merge-flashback', ...result, ...merging, dryRun: false })).toMatchObject({
        inserted: 400,
      })
      // what was written after all that is there
      await sql(`do $$ begin raise warning 'the end of it'; end $$`)
      await waitUntil('the log is written', async () => serverLog().includes('the end of it'))
      expect(
        serverLog()
          .match(/secret-of-row-\d+/g)
          ?.filter((t) => t !== secret(5000)) ?? [],
      ).toEqual([])
    } finally {
      for (const name of Object.keys(settings)) await sql(`alter system reset ${name}`)
      await sql('select pg_reload_conf()')
    }
  })
})

test('results are listed and dropped; a table that no flashback made is left alone', async () => {
  const { table, result } = await damaged('listed')
  const list = async () =>
    (await f.read.flashback.results.query({ instanceId: asInstanceId(id), database: 'shop' })).results
  expect((await list()).find((r) => r.table === table)).toMatchObject({
    result: result.result,
    resultName: result.resultName,
    tableName: 'public.listed',
    owner: 'owner',
  })
  const { tableName: _, ...asked } = result
  const other = await f.run({
    kind: 'drop-flashback',
    ...asked,
    result: table,
    resultName: 'public.listed',
  })
  expect(other.fault?.code).toBe('flashback.result_not_found')
  expect(await f.must({ kind: 'drop-flashback', ...asked })).toEqual({ dropped: true })
  expect((await list()).some((r) => r.result === result.result)).toBe(false)
  expect(await f.must({ kind: 'drop-flashback', ...asked })).toEqual({ dropped: false })
})

describe('a swap', () => {
  test('gives the table the rows of then and the result those of now; killed while its commit waits, once', async () => {
    const { name, result } = await damaged('swapped')
    await withWaitingCommits(async () => {
      const key = await f.begin({ kind: 'swap-flashback', ...result })
      await commitWaits()
      await f.agent.end('SIGKILL')
      await f.agent.start()
      const ended = await f.ended(key)
      expect([ended.state, ended.fault]).toEqual(['succeeded', null])
      expect(ended.result).toMatchObject({ rowsBefore: 605, rowsNow: 1000 })
      const [row] = await sql(`select '${result.resultName}'::regclass::oid::int8 as oid`)
      expect(ended.result?.result).toBe(Number(row?.oid))
    })
    expect(await sql(`select count(*)::int as n from ${name}`)).toEqual([{ n: 1000 }])
    expect(await sql(`select count(*)::int as n from ${result.resultName}`)).toEqual([{ n: 605 }])
  })

  test('with a table whose name the person did not see is refused', async () => {
    const { result } = await damaged('unseen')
    const { fault } = await f.run({ kind: 'swap-flashback', ...result, tableName: 'public.another' })
    expect(fault?.code).toBe('flashback.other_table')
  })
})

describe('a download', () => {
  type Opened = { operationId: never; download: never }
  const opened = async (result: Awaited<ReturnType<typeof damaged>>['result']): Promise<Opened> => {
    const { tableName: _, ...asked } = result
    const key = await f.begin({ kind: 'export-flashback', ...asked })
    expect((await f.ended(key)).fault).toBeNull()
    return { operationId: key.operationId as never, download: crypto.randomUUID() as never }
  }
  const piece = (of: Opened, n: number, end = false) =>
    f.read.flashback.readDownload.query({ ...of, piece: n, end })
  const whole = async (of: Opened) => {
    let text = ''
    const sizes: number[] = []
    for (let n: number | null = 0; n !== null; ) {
      const answer: { text: string; next: number | null } = await piece(of, n)
      text += answer.text
      if (answer.text !== '') sizes.push(answer.text.length)
      n = answer.next
    }
    return { text, sizes }
  }
  const passes = async () =>
    (await sql(`select from pg_stat_activity where usename = 'floe' and query like '%fetch 1 from rows%'`))
      .length

  test('has all rows, in pieces, as COPY writes them, as often as it is asked for', async () => {
    const of = await tableOf('large')
    await sql(`update large set v = repeat('ä😀",' || chr(10), 2000) where id % 2 = 0`)
    const [moment] = await sql(`select clock_timestamp()::text as at, pg_sleep(0.05)`)
    await sql('delete from large')
    const at = String(moment?.at).replace(' ', 'T')
    const made = await f.must({ kind: 'flashback-table', ...inShop(), ...of, at, resultName: null })
    const result = {
      ...inShop(),
      result: made.result,
      resultName: made.resultName,
      tableName: 'public.large',
    }
    const export_ = await opened(result)
    const first = await whole(export_)
    expect(first.sizes.length).toBeGreaterThan(20)
    expect(Math.max(...first.sizes)).toBeLessThanOrEqual(128 * 1024)
    const again = await whole({ ...export_, download: crypto.randomUUID() as never })
    expect(again.text).toBe(first.text)
    expect(first.text.startsWith('id,v\n')).toBe(true)
    // as a client that reads CSV does
    const fields = first.text.match(/(?:"(?:[^"]|"")*"|[^",\n]*)(?:,|\n)/g) ?? []
    expect(fields.length).toBe(2 * 1001)
    expect(fields.filter((t) => t.startsWith('"')).every((t) => t.length > 10_000)).toBe(true)
    expect(await passes()).toBe(0)
  })

  test('is read once at a time by a few; who stops is closed at once, as are all of an agent that is killed', async () => {
    const { result } = await damaged('abandoned')
    await sql(
      `insert into ${result.resultName} select n, repeat('x', 1000) from generate_series(5000, 9000) n`,
    )
    const of = await opened(result)
    const read = await piece(of, 0)
    expect(read.next).toBe(1)
    // the last one once more, as when its answer was lost
    expect(await piece(of, 0)).toEqual(read)
    await expect(piece(of, 5)).rejects.toThrow('no longer open')
    expect(await passes()).toBe(1)
    expect((await piece({ ...of, download: crypto.randomUUID() as never }, 0)).next).toBe(1)
    await expect(piece({ ...of, download: crypto.randomUUID() as never }, 0)).rejects.toThrow('at once')
    await piece(of, 1, true)
    await waitUntil('the engine has ended it', async () => (await passes()) === 1)
    await expect(piece(of, 1)).rejects.toThrow('no longer open')
    await f.agent.end('SIGKILL')
    await waitUntil('the engine has ended the other, too', async () => (await passes()) === 0)
    await f.agent.start()
    await expect(piece({ ...of, download: crypto.randomUUID() as never }, 0)).rejects.toThrow(
      'no longer open',
    )
  })

  test('of what nobody exported is refused', async () => {
    const of = { operationId: crypto.randomUUID() as never, download: crypto.randomUUID() as never }
    await expect(piece(of, 0)).rejects.toThrow('no longer open')
  })
})

test('whoever owns a database cannot have the agent run what they put beside its functions, or set for its sessions', async () => {
  await sql('create database trapped owner owner')
  const root = await session('postgres', 'trapped')
  const owner = await session('owner', 'trapped')
  try {
    // by hand into the schema in which the database's owner may create
    await root.query('create extension flashback_table schema public')
    await owner.query(`
      create function public.spring() returns boolean language plpgsql as $$ begin
        if (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
          execute 'create role taken superuser';
        end if;
        return true;
      end $$;
      create function public.polar_flashback_check(regclass, text) returns boolean language sql as 'select public.spring()';
      create function public.polar_flashback_check(oid, timestamptz) returns boolean language sql as 'select public.spring()';
      create function public.polar_flashback_table(oid, timestamptz, name, name, bool, text) returns boolean language sql as 'select public.spring()';
      create function public.polar_flashback_table(regclass, timestamptz, text, text, bool, text) returns boolean language sql as 'select public.spring()';
      create function public.polar_flashback_table(regclass, timestamptz, name) returns boolean language sql as 'select public.spring()';
      create function public.polar_flashback_compare(regclass, timestamptz) returns boolean language sql as 'select public.spring()';
      create function public.polar_flashback_compare(oid, timestamptz, oid, int4) returns boolean language sql as 'select public.spring()';
      create function public.polar_flashback_results(variadic int[]) returns boolean language sql as 'select public.spring()';
      create function public.polar_flashback_merge(oid, oid, bool, bool, bool, text[], text, int8, int8, int8, bool) returns boolean language sql as 'select public.spring()';
      create function public.same(oid, oid) returns boolean language sql as 'select public.spring()';
      create operator public.= (leftarg = oid, rightarg = oid, function = public.same);
      create function public.quote_ident(name) returns text language sql as 'select public.spring()::text';
      create domain public.odd as text check (public.spring());
      create table public.bait (id int primary key, v public.odd);
      insert into public.bait select n, 'then' from generate_series(1, 100) n;
    `)
    for (const setting of [
      'search_path = public, pg_catalog',
      'standard_conforming_strings = off',
      'default_transaction_read_only = on',
      `DateStyle = 'SQL, DMY'`,
      'statement_timeout = 1',
      'idle_in_transaction_session_timeout = 1',
    ])
      await root.query(`alter database trapped set ${setting}`)
    const [row] = (await root.query(`select 'public.bait'::regclass::oid::int8 as oid`)).rows
    const [moment] = (
      await root.query(
        `select pg_sleep(0.05), to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.USOF') as at`,
      )
    ).rows
    await owner.query('delete from public.bait where id <= 40')
    const inTrapped = { instanceId: asInstanceId(id), database: 'trapped' }
    const of = { table: Number(row?.oid), at: moment?.at }
    expect(await f.must({ kind: 'preview-flashback', ...inTrapped, ...of })).toMatchObject({ removed: 40 })
    const made = await f.must({ kind: 'flashback-table', ...inTrapped, ...of, resultName: null })
    const result = {
      ...inTrapped,
      result: made.result,
      resultName: made.resultName,
      tableName: 'public.bait',
    }
    expect(await f.must({ kind: 'compare-flashback', ...result })).toMatchObject({ removed: 40 })
    expect(await f.must({ kind: 'merge-flashback', ...result, ...merging, dryRun: false })).toMatchObject({
      inserted: 40,
    })
    const { tableName: _, ...asked } = result
    expect(await f.must({ kind: 'drop-flashback', ...asked })).toEqual({ dropped: true })
    expect(await sql(`select from pg_roles where rolname = 'taken'`)).toEqual([])
  } finally {
    await root.end()
    await owner.end()
  }
})

describe('a table that is not there as it was', () => {
  const lost = async () =>
    (await f.read.flashback.lost.query({ instanceId: asInstanceId(id), database: 'shop' })).lost

  test('is listed when it was dropped or truncated, and given back; once, where the agent is killed', async () => {
    const { table } = await tableOf('gone')
    const emptied = await tableOf('emptied')
    await sql('create index gone_value on gone (v); alter table gone add constraint checked check (id > 0)')
    await sql(`create function fits(int) returns bool language sql return $1 > 0;
      alter table gone add constraint fitting check (fits(id)), alter v set default 'none'`)
    await sql('drop table gone; truncate emptied; drop function fits')
    const of = await waitUntil('the drop is listed', async () =>
      (await lost()).find((l) => l.table === table && l.kind === 'dropped'),
    )
    expect(of).toMatchObject({ tableName: 'public.gone', definition: expect.stringContaining('id integer') })
    expect(of.definition).toContain('ADD CONSTRAINT checked CHECK ((id > 0))')
    expect(Math.abs(Date.now() - of.at)).toBeLessThan(60_000)
    expect((await lost()).find((l) => l.table === emptied.table)).toMatchObject({ kind: 'truncated' })
    await withWaitingCommits(async () => {
      const key = await f.begin({ kind: 'flashback-dropped-table', ...inShop(), table, lsn: of.lsn })
      await commitWaits()
      await f.agent.end('SIGKILL')
      await f.agent.start()
      const ended = await f.ended(key)
      expect([ended.state, ended.fault]).toEqual(['succeeded', null])
      expect(ended.result).toMatchObject({ rows: 1000 })
      // of what does not work any more the operation says how it can be made, and not why
      const said = ended.log.map((l) => l.text).filter((text) => text.includes('given back without'))
      expect((ended.result as { missing: string[] }).missing).toEqual(said)
      expect(said).toEqual([
        'table "gone" is given back without constraint "fitting": It would be made by: ALTER TABLE public.gone ADD CONSTRAINT fitting CHECK (public.fits(id));',
      ])
    })
    expect(
      await sql(`select conname from pg_constraint where conrelid = 'gone'::regclass and contype = 'c'`),
    ).toEqual([{ conname: 'checked' }])
    const indexes = await sql(`select indexname from pg_indexes where tablename = 'gone' order by 1`)
    expect(indexes).toEqual([{ indexname: 'gone_pkey' }, { indexname: 'gone_value' }])
    expect(await results(table)).toEqual([])
    // under its own name it is the table again, which nobody drops as what a flashback has left
    const [again] = await sql(`select 'public.gone'::regclass::oid::int8 as oid`)
    const { results: listed } = await f.read.flashback.results.query(inShop())
    expect(listed.some((r) => r.result === Number(again?.oid))).toBe(false)
    const dropped = await f.run({
      kind: 'drop-flashback',
      ...inShop(),
      result: Number(again?.oid),
      resultName: 'public.gone',
    })
    expect(dropped.fault?.code).toBe('flashback.result_not_found')
    // its name is taken now
    const second = await f.must({ kind: 'flashback-dropped-table', ...inShop(), table, lsn: of.lsn })
    expect(second.resultName).toBe(`public.polar_flashback_${table}`)
    const named = { resultName: 'gone then', resultSchema: 'polar_flashback' }
    expect(
      await f.must({ kind: 'flashback-dropped-table', ...inShop(), table, lsn: of.lsn, ...named }),
    ).toMatchObject({ resultName: 'polar_flashback.gone then', rows: 1000 })
    const then = await f.must({ kind: 'flashback-table', ...inShop(), ...emptied, resultName: null })
    expect(then.rows).toBe(1000)
  })

  test('whose schema was dropped with it goes where somebody says', async () => {
    await sql('create schema attic; grant all on schema attic to owner')
    const { table } = await tableOf('attic.chair')
    await sql('drop schema attic cascade')
    const of = await waitUntil('the drop is listed', async () =>
      (await lost()).find((l) => l.table === table && l.kind === 'dropped'),
    )
    const asked = { kind: 'flashback-dropped-table', ...inShop(), table, lsn: of.lsn } as const
    const refused = await f.run(asked)
    expect([refused.fault?.code, refused.fault?.message]).toEqual([
      'flashback.no_schema',
      'schema "attic" does not exist',
    ])
    expect((await f.run({ ...asked, resultSchema: 'nowhere' })).fault?.code).toBe('flashback.no_schema')
    const made = await f.must({ ...asked, resultSchema: 'public' })
    expect(made).toMatchObject({ resultName: 'public.chair', rows: 1000 })
    const { results: listed } = await f.read.flashback.results.query(inShop())
    expect(listed.some((r) => r.resultName === 'public.chair')).toBe(false)
  })

  test('before it was truncated has all that was committed, also in the same millisecond', async () => {
    const { table } = await tableOf('hasty')
    await sql('set synchronous_commit = off')
    await sql(`do $$ begin
      insert into hasty values (2001, 'at the last moment'); commit;
      execute 'truncate hasty'; commit;
    end $$`)
    await sql('reset synchronous_commit')
    const of = await waitUntil('it is listed', async () =>
      (await lost()).find((l) => l.table === table && l.kind === 'truncated'),
    )
    const exact = await f.must({ kind: 'flashback-dropped-table', ...inShop(), table, lsn: of.lsn })
    expect(exact).toMatchObject({ resultName: `public.polar_flashback_${table}`, rows: 1001 })
    const at = flashbackTimeOf(momentBefore(of.at))
    const then = await f.must({ kind: 'flashback-table', ...inShop(), table, at, resultName: null })
    expect(then.rows).toBe(1001)
  })

  test('in a database without the extension nothing can be listed; then it is prepared, and can', async () => {
    await sql('create database bare')
    const ask = () => f.read.flashback.lost.query({ instanceId: asInstanceId(id), database: 'bare' })
    await expect(ask()).rejects.toThrow('lacks the extension')
    const prepared = await f.must({ kind: 'prepare-flashback', instanceId: id, database: 'bare' })
    // only superusers create in public there
    expect(prepared).toMatchObject({ schema: 'public' })
    expect(await ask()).toEqual({ lost: [] })
    expect(await f.must({ kind: 'prepare-flashback', instanceId: id, database: 'bare' })).toEqual(prepared)
  })
})

test('what happened to tables is read from the WAL until its end, each table with its last change', async () => {
  await f.must({ kind: 'prepare-flashback', ...inShop() })
  const busy = await tableOf('busy')
  const quiet = await tableOf('quiet')
  await sql('insert into busy select n from generate_series(2001, 9000) n; delete from busy where id > 2500')
  await tableOf('blanked')
  await sql('update quiet set v = null where id = 1; truncate blanked')
  const ask = (table: number | null) =>
    f.read.flashback.activity.query({ instanceId: asInstanceId(id), database: 'shop', table })
  const seen = await waitUntil('all of it is read', async () => {
    const read = await ask(null)
    return read.complete && read.events.some((e) => e.table === busy.table && e.deleted > 0) ? read : null
  })
  const change = seen.events.find((e) => e.table === busy.table && e.kind === 'change' && e.deleted > 0)
  expect(change).toMatchObject({ tableName: 'public.busy', deleted: 6500 })
  expect(Math.abs(Date.now() - (change?.at ?? 0))).toBeLessThan(60_000)
  expect(seen.events.some((e) => e.kind === 'truncate' && e.tableName === 'public.blanked')).toBe(true)
  expect(seen.events.map((e) => e.at)).toEqual(seen.events.map((e) => e.at).sort((a, b) => b - a))
  expect(seen.coveredFrom).not.toBeNull()
  expect((await ask(busy.table)).events.every((e) => e.table === busy.table)).toBe(true)
  const { tables } = await f.read.flashback.tables.query({
    instanceId: asInstanceId(id),
    database: 'shop',
    search: 'quiet',
  })
  expect(tables.find((t) => t.oid === quiet.table)?.lastChangedAt).toBeGreaterThan(millisecondsOf(quiet.at))
})

test('what was done to partitions is told of their table, with those that are no more', async () => {
  await f.must({ kind: 'prepare-flashback', ...inShop() })
  await sql(`create table visit (id int, day int) partition by list (day);
    create table visit_1 partition of visit for values in (1);
    create table visit_rest partition of visit default partition by list (day);
    create table visit_2 partition of visit_rest for values in (2);
    create table visit_3 partition of visit_rest for values in (3)`)
  await sql('insert into visit select n, 1 + n % 3 from generate_series(1, 3000) n')
  const [row] = await sql(
    `select 'visit'::regclass::oid::int8 as visit, 'visit_1'::regclass::oid::int8 as first`,
  )
  const [visit, first] = [Number(row?.visit), Number(row?.first)]
  const ask = (table: number | null) =>
    f.read.flashback.activity.query({ instanceId: asInstanceId(id), database: 'shop', table })
  const eventsOf = (
    table: number | null,
    enough: (events: Awaited<ReturnType<typeof ask>>['events']) => boolean,
  ) =>
    waitUntil('it is read', async () => {
      const { events, complete } = await ask(table)
      return complete && enough(events) ? events : null
    })
  await eventsOf(visit, (events) => events.some((e) => e.inserted === 3000))
  // of each partition fewer than count by themselves
  await sql('delete from visit where id <= 1200')
  const events = await eventsOf(visit, (seen) => seen.some((e) => e.deleted > 0))
  expect(events.find((e) => e.deleted > 0)).toMatchObject({
    kind: 'change',
    table: visit,
    tableName: 'public.visit',
    deleted: 1200,
    partitions: 3,
  })
  expect((await ask(null)).events.find((e) => e.deleted === 1200)).toMatchObject({ table: visit })
  expect((await ask(first)).events.some((e) => e.deleted > 0)).toBe(false)
  expect((await ask(visit)).leastPartitionRows).toBe(50)
  const [before] = await sql(
    `select (extract(epoch from clock_timestamp()) * 1000)::float8 as at, pg_sleep(0.05)`,
  )
  await sql('truncate visit_1, visit_2')
  await sql('drop table visit_3')
  // of a partition that is gone the engine may say no more than that the table above it was altered
  const after = await eventsOf(visit, (seen) =>
    seen.some((e) => ['drop', 'ddl'].includes(e.kind) && e.at > Number(before?.at) && e.partitions === 1),
  )
  expect(after.find((e) => e.kind === 'truncate')).toMatchObject({ table: visit, partitions: 2 })
  await sql('insert into visit values (9999, 1)')
  const listed = await waitUntil('its last change is known', async () => {
    await ask(null)
    const { tables } = await f.read.flashback.tables.query({ ...inShop(), search: 'public.visit', limit: 1 })
    const [found] = tables
    return found?.lastChangedAt && found.lastChangedAt > Number(before?.at) ? found : null
  })
  expect(listed).toMatchObject({ name: 'visit', kind: 'partitioned' })
})
