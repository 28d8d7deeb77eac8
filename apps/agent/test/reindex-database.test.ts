import { readdirSync, readFileSync } from 'node:fs'
import { type Reindexed, Reindexed as Schema } from '@floe/domain'
import { waitUntil } from '@floe/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture, asInstanceId } from './agent-fixture'

let f: AgentFixture
let id: string
beforeAll(async () => {
  f = await AgentFixture.start()
  id = await f.createRunning()
  await f.query(id, 'create database shop')
})
afterAll(() => f.remove())

/** A session in database shop. */
async function inShop<T>(run: (client: pg.Client) => Promise<T>): Promise<T> {
  const { port } = (await f.observed(id)) ?? {}
  const client = new pg.Client({
    host: '127.0.0.1',
    port: port as number,
    user: 'postgres',
    password: 'open sesame',
    database: 'shop',
  })
  client.on('error', () => {})
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}
const sql = (text: string) => inShop((client) => client.query(text))
const invalid = async () =>
  (await sql('select indexrelid::regclass::text as name from pg_index where not indisvalid')).rows.map(
    (r) => r.name,
  )
const task = (database = 'shop') =>
  ({ kind: 'reindex-database', instanceId: asInstanceId(id), database }) as const
/** A lock that a rebuild of an index of this table waits for, until `let go`. */
async function holding<T>(table: string, run: () => Promise<T>): Promise<T> {
  return inShop(async (client) => {
    await client.query(`begin; lock table ${table} in row exclusive mode`)
    return run()
  })
}
/** The rebuild has made its new index, and waits for the lock. */
const waitsForLock = () =>
  waitUntil('a rebuild waits', async () => {
    const { rows } = await sql(
      `select from pg_stat_progress_create_index where phase like 'waiting for writers%'`,
    )
    return rows.length > 0 && (await invalid()).length > 0
  })

const childrenOf = (parent: number): number[] =>
  readdirSync('/proc')
    .filter((p) => /^\d+$/.test(p))
    .map(Number)
    .filter((p) => {
      try {
        return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${p}/status`, 'utf8'))?.[1]) === parent
      } catch {
        return false
      }
    })

/** A session may have ended meanwhile. */
const signal = (pid: number, name: NodeJS.Signals) => {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

describe('the indexes of a database', () => {
  test('are rebuilt beside writers, smaller than they were; what cannot be is named', async () => {
    await sql(`create table item (n int primary key, t text);
      create schema "Odd ""schema"; create table "Odd ""schema"."T" (n int unique);
      create table room (during int4range, exclude using gist (during with &&));
      insert into item select g, repeat('x', 20) from generate_series(1, 50000) g;
      create index item_t on item (t, n);
      delete from item where n % 50 <> 0`)
    await sql('vacuum item')
    const status = await f.run(task())
    expect(status.fault).toBeNull()
    expect(status.state).toBe('succeeded')
    const result: Reindexed = Schema.parse(status.result)
    expect(result.rebuilt).toBeGreaterThanOrEqual(3)
    expect(result.bytesAfter).toBeLessThan(result.bytesBefore / 4)
    expect(result.skipped).toEqual([
      { index: 'public.room_during_excl', why: 'it belongs to an exclusion constraint' },
    ])
    expect(status.work?.doneBytes).toBe(status.work?.totalBytes)
    expect(await invalid()).toEqual([])
  })

  test('of a database that is not there: refused by name', async () => {
    const { state, fault } = await f.run(task('nowhere'))
    expect([state, fault?.code, fault?.message]).toEqual([
      'failed',
      'database.not_found',
      'database "nowhere" does not exist',
    ])
  })

  test('one that cannot be built does not keep the others from it, and is named', async () => {
    await sql(`create table broken (n int); create table whole (n int primary key);
      insert into broken values (1), (2); create function f(n int) returns int language sql immutable as 'select n';
      create unique index broken_f on broken (f(n));
      create or replace function f(n int) returns int language sql immutable as 'select 1'`)
    const { state, fault } = await f.run(task())
    expect(state).toBe('failed')
    expect(fault).toMatchObject({ code: 'reindex.incomplete', message: '1 index was not rebuilt' })
    expect(fault?.detail).toMatch(/public\.broken_f: could not create unique index/)
    expect(await invalid()).toEqual([])
    await sql('drop table broken')
  })

  test('cancelled: what is being built is dropped, and the former index stays', async () => {
    const key = f.newKey()
    await holding('item', async () => {
      await f.begin(task(), key)
      await waitsForLock()
      const says = /^rebuilding index public\.\S+ \(\d+ of \d+\): waiting for writers/
      await waitUntil('it says so', async () => {
        const { message } = await f.read.task.check.query({ key })
        return message !== null && says.test(message)
      })
      await f.task.task.cancel.mutate(key)
    })
    expect((await f.ended(key)).state).toBe('cancelled')
    expect(await invalid()).toEqual([])
    expect((await sql('select from item where n = 50')).rowCount).toBe(1)
  })

  test('cancelled while a transaction holds on to its table: it ends, says what is left, and so does the next', async () => {
    await holding('item', async () => {
      const key = await f.begin(task())
      await waitsForLock()
      await f.task.task.cancel.mutate(key)
      const status = await f.ended(key)
      expect(status.state).toBe('cancelled')
      expect(status.log.map((l) => l.text).join('\n')).toMatch(/not valid, was not dropped: .*lock timeout/)
    })
    const [left] = await invalid()
    const { skipped } = Schema.parse((await f.run(task())).result)
    expect(skipped).toContainEqual({
      index: `public.${left}`,
      why: 'a rebuild left it unfinished; drop it by DROP INDEX CONCURRENTLY',
    })
    await sql(`drop index concurrently ${left}`)
  })

  test('an engine that hangs ends it within seconds, and it can be asked for again', async () => {
    const pid = Number((await f.observed(id))?.postmasterPid)
    const key = f.newKey()
    let paused: number[] = []
    await holding('item', async () => {
      await f.begin(task(), key)
      await waitsForLock()
      paused = [pid, ...childrenOf(pid)]
      for (const p of paused) signal(p, 'SIGSTOP')
      try {
        const { state, fault } = await f.ended(key)
        expect([state, fault?.code]).toEqual(['failed', 'instance.no_answer'])
      } finally {
        for (const p of paused) signal(p, 'SIGCONT')
      }
    })
    await waitUntil('it runs again', async () => (await f.observed(id))?.state === 'running')
    for (const name of await invalid()) await sql(`drop index concurrently if exists ${name}`)
    expect((await f.run(task())).state).toBe('succeeded')
  })

  test('the agent killed in the middle: it goes on, and leaves nothing that is not valid', async () => {
    const key = f.newKey()
    await holding('item', async () => {
      await f.begin(task(), key)
      await waitsForLock()
      await f.agent.end('SIGKILL')
    })
    await f.agent.start()
    const status = await f.ended(key)
    expect([status.state, status.fault]).toEqual(['succeeded', null])
    expect(await invalid()).toEqual([])
  })
})
