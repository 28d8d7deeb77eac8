import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { commandOf, listPids } from '@floe/host/process-facts'
import { waitUntil } from '@floe/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'
import { RestoreFixture } from './restore-fixture'

let f: AgentFixture
let r: RestoreFixture
/** A base backup, a moment after it at which all rows were there, and their content then. */
let backup: string
let before: string
let content: unknown[]
const contentOf = (table: string) =>
  r.sql(`select count(*)::int as rows, md5(string_agg(t::text, '' order by id)) as hash from ${table} t`)
const tables = async () =>
  (
    await r.sql<{ name: string }>(
      `select relname as name from pg_class where relname like 'polar_restored%' order by 1`,
    )
  ).map(({ name }) => name)

beforeAll(async () => {
  f = await AgentFixture.start(4)
  r = await RestoreFixture.start(f)
  await r.sql(`create role app login password 'open sesame'; create role reader`)
  await r.sql(`grant create on schema public to app; grant create on database shop to app`)
  await r.sql(
    `create type mood as enum ('ok', 'bad'); create domain positive as int check (value > 0);
     create table account (id int primary key, name text, note text, gone int, amount numeric(12, 2), tags text[],
       feels mood, n positive, span int4range, made timestamptz default now(), total int generated always as (id + 1) stored);
     alter table account drop column gone;
     insert into account select g, 'name ' || g, case when g % 3 = 0 then repeat(md5(g::text), 200) end, g / 3.0,
       array['a' || g, E'b\\\\\\n\\t"c'], case when g % 2 = 0 then 'ok'::mood end, g, int4range(g, g + 5)
       from generate_series(1, 2000) g;
     create schema "Odd ""schema"; create type "Odd ""schema".pair as (a int, b text); create domain short as varchar(7);
     create table "Odd ""schema"."T" ("A x" int, "b%" mood, pair "Odd ""schema".pair, d short[], kind regclass, c text collate "C")
       partition by range ("A x");
     create table "Odd ""schema".p1 partition of "Odd ""schema"."T" for values from (0) to (100);
     create table "Odd ""schema".p2 partition of "Odd ""schema"."T" for values from (100) to (1000);
     insert into "Odd ""schema"."T" select g, 'bad', format('(%s,x)', g)::"Odd ""schema".pair, '{abc}', 'account', 'ä' from generate_series(1, 200) g`,
    'shop',
    'app',
  )
  backup = await r.backUp('base')
  await r.sql(`update account set name = 'changed ' || id where id % 5 = 0`, 'shop', 'app')
  content = await contentOf('account')
  before = await r.moment()
  await r.sql('delete from account where id > 100', 'shop', 'app')
  await r.archived()
})
afterAll(async () => {
  await f.remove()
  r.remove()
})

afterEach(async () => {
  for (const name of await tables()) await r.sql(`drop table ${name}`)
})

describe('a table is restored from a base backup and WAL', () => {
  test('as it was just before its rows were deleted; nothing else of the instance changes', async () => {
    const files = readdirSync(f.dataDirectory(r.id)).sort()
    const result = await r.must({ at: before, backup })
    expect(result).toMatchObject({ resultName: 'public.polar_restored_account', rows: 2_000 })
    expect(Date.parse(result.reachedAt as string)).toBeLessThanOrEqual(Date.parse(before))
    expect(result.warnings).toEqual(['Column "n" has the base type integer of its domain public.positive.'])
    expect(await contentOf('polar_restored_account')).toEqual(content)
    const types = `select attname, format_type(atttypid, atttypmod) as type from pg_attribute
      where attrelid = 'polar_restored_account'::regclass and attnum > 0 order by attnum`
    expect(
      (await r.sql<{ attname: string; type: string }>(types)).map((c) => `${c.attname} ${c.type}`),
    ).toEqual([
      ...[
        'id integer',
        'name text',
        'note text',
        'amount numeric(12,2)',
        'tags text[]',
        'feels mood',
        'n integer',
      ],
      ...['span int4range', 'made timestamp with time zone', 'total integer'],
    ])
    expect(
      await r.sql(
        `select pg_get_userbyid(relowner) as owner, relacl, relhastriggers from pg_class where relname = 'polar_restored_account'`,
      ),
    ).toEqual([{ owner: 'app', relacl: null, relhastriggers: false }])
    // by it polar_flashback_results() knows whose rows these are
    const [{ comment, oid, columns } = {}] = await r.sql(
      `select obj_description('polar_restored_account'::regclass) as comment, oid::int, relnatts as columns
         from pg_class where relname = 'account'`,
    )
    expect(comment).toBe(
      `"public"."account" as of ${before.replace('T', ' ').replace('Z', '+00')} (table ${oid}, columns ${columns}, restored from a base backup)`,
    )
    expect(await r.sql('select count(*)::int as n from account')).toEqual([{ n: 100 }])
    expect(r.left()).toEqual([])
    expect(readdirSync(f.dataDirectory(r.id)).sort()).toEqual(files)
    expect(await r.sql(`select from pg_namespace where nspname like 'floe_restore%'`)).toEqual([])
  })

  test('a partitioned table, columns whose types have changed, and names that need quotes', async () => {
    const at = await r.moment()
    await r.sql(`alter type mood add value 'new'`)
    await r.sql(`drop table "Odd ""schema"."T"; create table "Odd ""schema"."T" (n int)`, 'shop', 'app')
    await r.sql('create table later ()', 'shop', 'app')
    await r.archived()
    const named = '"Odd ""schema"."T"'
    const result = await r.must({ at, backup, table: named, result: 'Then "now"' })
    expect(result).toMatchObject({ resultName: '"Odd ""schema"."Then ""now"""', rows: 200 })
    expect(result.warnings).toEqual([
      'Column "b%" is text: its type was public.mood, which is not the same here.',
      'Column "pair" is text: its type was "Odd ""schema".pair, which is not the same here.',
      'Column "d" has the base type character varying(7)[] of its domain public.short.',
      'Column "kind" is text: its type was regclass, which is not the same here.',
    ])
    expect(
      await r.sql(
        `select "A x", "b%", pair, d::text, kind, c from "Odd ""schema"."Then ""now""" where "A x" = 150`,
      ),
    ).toEqual([{ 'A x': 150, 'b%': 'bad', pair: '(150,x)', d: '{abc}', kind: 'public.account', c: 'ä' }])
  })

  test('WAL that asks for larger settings than the backup was made with', async () => {
    await f.must({
      kind: 'change-settings',
      instanceId: r.id,
      changes: [
        { name: 'max_connections', value: '180' },
        { name: 'max_prepared_transactions', value: '40' },
      ],
    } as never)
    await f.must({ kind: 'restart-instance', instanceId: r.id, mode: 'fast' } as never)
    const at = await r.moment()
    await r.sql('update account set note = null where id = 1', 'shop', 'app')
    await r.archived()
    const status = await r.run({ at, backup })
    expect(status.fault).toBeNull()
    expect(status.result).toMatchObject({ rows: 100 })
    expect(status.log.map((l) => l.text)).toContain(
      'the WAL asks for larger settings: starting again with them',
    )
  })

  test('into another system: the owner is the role of that name, and the result tells of it', async () => {
    const other = await f.createRunning()
    await f.query(other, 'create database shop')
    const open = join(r.scratch.path, 'open')
    cpSync(backup, open, { recursive: true })
    const wal = join(r.scratch.path, "it's 100% open")
    cpSync(r.walDirectory, wal, { recursive: true })
    for (const path of [open, wal]) spawnSync('chmod', ['-R', 'a+rX', path])
    const task = { ...(r.task({ at: before, backup: open, wal }) as object), instanceId: other } as never
    expect((await f.run(task)).fault).toMatchObject({
      code: 'restore.no_owner',
      message: 'the table has no owner here: role "app" does not exist',
    })
    await f.query(other, 'create role app')
    const status = await f.run(task)
    expect(status.fault).toBeNull()
    expect((status.result as { warnings: string[] }).warnings.join('\n')).toMatch(/is of another system/)
    await f.must({
      kind: 'delete-instance',
      instanceId: other,
      confirmName: `t-${other.slice(0, 8)}`,
      keepFiles: false,
    } as never)
  })
})

/** A copy of the backup that a test may spoil, as the instance's user has it. */
function copyOf(name: string): string {
  const path = join(r.scratch.path, name)
  spawnSync('cp', ['-a', backup, path])
  return path
}
const faultOf = async (o: Parameters<RestoreFixture['run']>[0]) => {
  const { fault } = await r.run(o)
  expect(r.left()).toEqual([])
  return fault
}

describe('what cannot be restored is refused with the reason', () => {
  test('a moment after the end of WAL: the nearest one is named, and works', async () => {
    await r.sql(`create table newest (id int); insert into newest values (1)`, 'shop', 'app')
    await r.archived()
    const fault = await faultOf({ at: new Date().toISOString(), backup })
    expect(fault).toMatchObject({ code: 'restore.wal_ends_early' })
    const nearest = /The nearest moment that can be restored is (\S+Z)\./.exec(fault?.hint ?? '')?.[1]
    expect(await r.must({ at: nearest as string, backup })).toMatchObject({ rows: 100 })
  })

  test('a moment before the backup, and one that has not come yet', async () => {
    const early = { at: '2020-01-01T00:00:00Z', backup }
    expect(await faultOf(early)).toMatchObject({ code: 'restore.before_backup' })
    const path = copyOf('untimed')
    const label = join(path, 'backup_label')
    writeFileSync(label, readFileSync(label, 'utf8').replace(/^START TIME.*\n/m, ''))
    rmSync(join(path, 'backup_manifest'))
    expect(await faultOf({ ...early, backup: path })).toMatchObject({ code: 'restore.before_backup' })
    expect(await faultOf({ at: '2099-01-01T00:00:00Z', backup })).toMatchObject({ code: 'restore.in_future' })
  })

  test('what the instance’s user cannot read, though root could', async () => {
    const hidden = copyOf('hidden')
    chmodSync(hidden, 0o700)
    chownSync(hidden, 0, 0)
    expect(await faultOf({ at: before, backup: hidden })).toMatchObject({
      code: 'restore.not_readable',
      hint: expect.stringContaining('never as root'),
    })
    const file = copyOf('file')
    const one = join(file, 'global', 'pg_filenode.map')
    chownSync(one, 0, 0)
    chmodSync(one, 0o600)
    expect(await faultOf({ at: before, backup: file })).toMatchObject({
      code: 'restore.not_readable',
      detail: expect.stringContaining('global/pg_filenode.map'),
    })
    const wal = join(r.scratch.path, 'hidden-wal')
    mkdirSync(wal, { mode: 0o700 })
    expect(await faultOf({ at: before, backup, wal })).toMatchObject({
      code: 'restore.not_readable',
      message: 'the WAL archive cannot be read by the instance’s user',
    })
  })

  test('links and tablespaces, by name; a link in the archive', async () => {
    const linked = copyOf('linked')
    rmSync(join(linked, 'global', 'pg_filenode.map'))
    symlinkSync('/etc/hostname', join(linked, 'global', 'pg_filenode.map'))
    expect(await faultOf({ at: before, backup: linked })).toMatchObject({
      code: 'restore.link',
      detail: expect.stringContaining('global/pg_filenode.map'),
    })
    const spaced = copyOf('spaced')
    symlinkSync('/srv', join(spaced, 'pg_tblspc', '4711'))
    expect(await faultOf({ at: before, backup: spaced })).toMatchObject({
      code: 'restore.tablespaces',
      detail: 'It has "pg_tblspc/4711".',
    })
    const wal = join(r.scratch.path, 'linked-wal')
    mkdirSync(wal)
    symlinkSync('/etc/hostname', join(wal, '000000010000000000000001'))
    expect(await faultOf({ at: before, backup, wal })).toMatchObject({ code: 'restore.link' })
  })

  test('no backup, a part of one, one without a label, one in another form, and no archive', async () => {
    expect(await faultOf({ at: before, backup: '/nowhere' })).toMatchObject({ code: 'restore.no_directory' })
    expect(await faultOf({ at: before, backup: r.walDirectory })).toMatchObject({
      code: 'restore.no_backup',
      detail: 'It has no file "PG_VERSION".',
    })
    const part = copyOf('part')
    rmSync(join(part, 'base', '1'), { recursive: true })
    expect(await faultOf({ at: before, backup: part })).toMatchObject({
      code: 'restore.incomplete_backup',
      detail: expect.stringContaining('base/1/'),
    })
    const bare = copyOf('bare')
    rmSync(join(bare, 'backup_label'))
    rmSync(join(bare, 'backup_manifest'))
    expect(await faultOf({ at: before, backup: bare })).toMatchObject({ code: 'restore.no_label' })
    const packed = join(r.scratch.path, 'packed-wal')
    mkdirSync(packed)
    writeFileSync(join(packed, '000000010000000000000001.gz'), '')
    expect(await faultOf({ at: before, backup, wal: packed })).toMatchObject({ code: 'restore.packed_wal' })
    expect(await faultOf({ at: before, backup, wal: '/nowhere' })).toMatchObject({
      code: 'restore.no_directory',
    })
    const empty = join(r.scratch.path, "empty 100% it's")
    mkdirSync(empty)
    expect(await faultOf({ at: before, backup, wal: empty })).toMatchObject({
      code: 'restore.wal_ends_early',
    })
  })

  test('a table or a database that was not there, a name that is taken, a schema that is gone, a catalog', async () => {
    expect(await faultOf({ at: before, backup, table: 'public.nothing' })).toMatchObject({
      code: 'restore.no_table',
    })
    expect(await faultOf({ at: before, backup, result: 'account' })).toMatchObject({
      code: 'restore.name_taken',
    })
    expect(await faultOf({ at: before, backup, table: 'gone.account' })).toMatchObject({
      code: 'restore.no_schema',
    })
    expect(await faultOf({ at: before, backup, table: 'pg_catalog.pg_authid' })).toMatchObject({
      code: 'restore.no_schema',
    })
    const { fault } = await f.run({
      ...(r.task({ at: before, backup }) as object),
      database: 'nowhere',
    } as never)
    expect(fault).toMatchObject({ code: 'database.not_found' })
  })
})

const restoredEngines = () =>
  listPids().filter((pid) => commandOf(pid).some((word) => word.includes(`${r.id}/restore-`)))

/** Not the change of a file, which the agent waits for and nobody but root can stop. */
const isOfEngine = (pid: number) => !commandOf(pid)[0]?.endsWith('/floe-tree')

/** Whether a process was there to be stopped. */
function stop(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGSTOP')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    return false
  }
}

/** Keeps a restore from taking its place under its name, until `run` is over: its transaction waits for this one. */
async function holdingName<T>(run: () => Promise<T>): Promise<T> {
  return r.session(async (client) => {
    await client.query('begin; create table polar_restored_account ()')
    return run()
  })
}
const waitsToCommit = () =>
  waitUntil('the restore waits with all rows copied', async () => {
    const rows = await r.sql(
      `select from pg_stat_activity where application_name = 'floe restore' and wait_event_type = 'Lock'`,
    )
    return rows.length > 0
  })
const nothingLeft = async () => {
  await waitUntil(
    'nothing is left on the host',
    () => r.left().length === 0 && restoredEngines().length === 0,
  )
  await waitUntil('nothing is left in the instance', async () => {
    const rows = await r.sql(`select from pg_stat_activity where application_name = 'floe restore'`)
    return rows.length === 0
  })
  expect(await r.sql(`select from pg_namespace where nspname like 'floe_restore%'`)).toEqual([])
}

describe('a backup that is written meanwhile', () => {
  test('a file that grows is not copied beyond what it was, and nothing is left', async () => {
    const growing = copyOf('growing')
    rmSync(join(growing, 'backup_manifest'))
    const largest = join(growing, 'base', 'grows')
    writeFileSync(largest, Buffer.alloc(64 * 1_048_576))
    const user = statSync(join(growing, 'PG_VERSION'))
    chownSync(largest, user.uid, user.gid)
    // it goes on until it is stopped, or for a GB
    const grow = 'i=0; while [ $i -lt 16384 ]; do head -c 65536 /dev/zero >>"$0"; i=$((i + 1)); done'
    const writer = spawn('sh', ['-c', grow, largest])
    const stopped = new Promise((resolve) => writer.once('close', resolve))
    try {
      expect(await faultOf({ at: before, backup: growing })).toMatchObject({
        code: 'restore.not_copied',
        detail: expect.stringMatching(/grew while it was copied|changed while it was copied/),
      })
    } finally {
      writer.kill('SIGKILL')
      await stopped
    }
    await nothingLeft()
  })
})

describe('given up or killed in the middle', () => {
  test('cancelled while its engine stands still: the engine is ended, and nothing is left', async () => {
    const key = await f.begin(r.task({ at: before, backup }))
    // its programs come and go before the engine that stays
    const stands = () => restoredEngines().filter(isOfEngine).some(stop)
    await waitUntil('a process of its engine stands still', stands, 15_000, 15)
    await f.task.task.cancel.mutate(key)
    expect((await f.ended(key)).state).toBe('cancelled')
    await nothingLeft()
    expect(await tables()).toEqual([])
  })

  test('cancelled when all rows are copied: there is no table', async () => {
    const key = f.newKey()
    await holdingName(async () => {
      await f.begin(r.task({ at: before, backup }), key)
      await waitsToCommit()
      await f.task.task.cancel.mutate(key)
      expect((await f.ended(key)).state).toBe('cancelled')
    })
    await nothingLeft()
    expect(await tables()).toEqual([])
  })

  test('the agent killed while its engine recovers: it begins again, and leaves nothing but the table', async () => {
    const key = await f.begin(r.task({ at: before, backup }))
    await waitUntil('the engine runs', () => restoredEngines().length > 0, 15_000, 15)
    await f.agent.end('SIGKILL')
    expect(r.left().length).toBeGreaterThan(0)
    await f.agent.start()
    expect(await f.ended(key)).toMatchObject({ state: 'succeeded', result: { rows: 2_000 } })
    await nothingLeft()
    expect(await tables()).toEqual(['polar_restored_account'])
  })

  test('the agent killed before the commit: there is one table in the end', async () => {
    const key = f.newKey()
    await holdingName(async () => {
      await f.begin(r.task({ at: before, backup }), key)
      await waitsToCommit()
      await f.agent.end('SIGKILL')
    })
    await f.agent.start()
    expect(await f.ended(key)).toMatchObject({ state: 'succeeded', result: { rows: 2_000 } })
    await nothingLeft()
    expect(await tables()).toEqual(['polar_restored_account'])
  })

  test('the agent killed when the commit had taken place: the result is that of the first run', async () => {
    const standbys = (names: string) =>
      r.session(async (client) => {
        await client.query('set synchronous_commit = local')
        await client.query(`alter system set synchronous_standby_names = '${names}'`)
        await client.query('select pg_reload_conf()')
      })
    const key = f.newKey()
    await standbys('nobody')
    try {
      await f.begin(r.task({ at: before, backup }), key)
      await waitUntil('the commit waits for a standby', async () => {
        const rows = await r.sql(
          `select from pg_stat_activity where application_name = 'floe restore' and wait_event = 'SyncRep'`,
        )
        return rows.length > 0
      })
      await f.agent.end('SIGKILL')
    } finally {
      await standbys('')
    }
    await f.agent.start()
    const status = await f.ended(key)
    expect(status).toMatchObject({ state: 'succeeded', result: { rows: 2_000 } })
    expect(status.log.map((l) => l.text)).toContain('the table had been made before the agent was restarted')
    await nothingLeft()
    await r.session((client) => client.query('alter system reset synchronous_standby_names'))
  })

  test('the agent killed, and its task forgotten: what is left goes at the next start', async () => {
    await f.begin(r.task({ at: before, backup }))
    await waitUntil('the engine runs', () => restoredEngines().length > 0, 15_000, 15)
    await f.agent.end('SIGKILL')
    const state = join(f.agent.home.home, 'agent', 'tasks')
    renameSync(state, `${state}.gone`)
    await f.agent.start()
    await nothingLeft()
    expect(existsSync(state)).toBe(true)
    expect(await tables()).toEqual([])
  })
})

describe('strangers', () => {
  test('nothing that a backup or an owner says runs as the agent’s superuser, or decides what is made', async () => {
    const witness = join(r.scratch.path, 'witness')
    mkdirSync(witness)
    chmodSync(witness, 0o777)
    const touch = (name: string) => `touch ${witness}/${name}`
    // as of the backup: a login trigger, and settings of the database and the roles
    await r.sql(`create function say() returns event_trigger language plpgsql security definer as $f$
        begin execute format('copy (select 1) to program %L', 'cat > ${witness}/login-' || session_user); end $f$;
      create event trigger greet on login execute function say();
      create schema evil; grant all on schema evil to app`)
    await r.sql(
      `create table evil.seen (who name, session name);
       create function evil.check(n int) returns bool language plpgsql as $f$
         begin insert into evil.seen values (current_user, session_user); return true; end $f$;
       create domain evil.checked as int check (evil.check(value));
       create type evil.pair as (a int, b evil.checked);
       create table public.bait (id int, n evil.checked, ns evil.checked[], p evil.pair, t text default 'x');
       insert into public.bait values (1, 1, '{1,2}', '(1,2)', 'y')`,
      'shop',
      'app',
    )
    for (const set of [
      `database shop set search_path = evil, public`,
      `database shop set local_preload_libraries = 'evil'`,
      `role floe in database shop set session_preload_libraries = 'evil'`,
    ])
      await r.sql(`alter ${set}`, 'postgres')
    const hostile = await r.backUp('hostile')
    for (const set of ['database shop reset all', 'role floe in database shop reset all'])
      await r.sql(`alter ${set}`, 'postgres')
    await r.sql('drop event trigger greet')
    const at = await r.moment()
    expect(readdirSync(witness)).toContain('login-app')
    for (const name of readdirSync(witness)) rmSync(join(witness, name))
    await r.sql('truncate evil.seen')
    await r.archived()
    writeFileSync(
      join(hostile, 'postgresql.auto.conf'),
      [
        `archive_command = '${touch('archive')}'`,
        `restore_command = '${touch('restore')}'`,
        `recovery_end_command = '${touch('end')}'`,
        `archive_cleanup_command = '${touch('cleanup')}'`,
        `shared_preload_libraries = 'evil'`,
        `local_preload_libraries = 'evil'`,
        `listen_addresses = '*'`,
        `data_directory = '${witness}'`,
      ].join('\n'),
    )
    // in the instance: what would run, or give something away, when a table is made
    await r.sql(`create function on_ddl() returns event_trigger language plpgsql as $f$
        begin insert into evil.seen values (current_user, 'ddl'); end $f$;
      create event trigger ddl on ddl_command_end execute function on_ddl();
      alter default privileges for role floe grant all on tables to reader;
      alter default privileges for role floe grant select on tables to public`)
    await r.sql('alter default privileges grant all on tables to reader', 'shop', 'app')
    await r.sql('truncate evil.seen')

    const result = await r.must({ at, backup: hostile, table: 'public.bait' })
    expect(result.rows).toBe(1)
    expect(await r.sql('select * from evil.seen')).toEqual([])
    expect(readdirSync(witness)).toEqual([])
    expect(await r.sql('select * from polar_restored_bait')).toEqual([
      { id: 1, n: 1, ns: [1, 2], p: '(1,2)', t: 'y' },
    ])
    const [made] = await r.sql(
      `select pg_get_userbyid(relowner) as owner, relacl::text, relhastriggers from pg_class where relname = 'polar_restored_bait'`,
    )
    expect(made).toMatchObject({ owner: 'app', relhastriggers: false })
    expect(made?.relacl ?? '').not.toMatch(/reader|{=|,=/)
  })
})
