import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskResult } from '@floe/agent-contract'
import { endEnginesBelow, makeScratchDirectory } from '@floe/testkit'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { walFiles } from '../src/engine/creation/copy-by-reflink'
import { AgentFixture } from './agent-fixture'
import { mountXfs, whyNoXfs } from './mounted-file-system'
import { StandbyFixture } from './standby-fixture'

const why = whyNoXfs()

test('the WAL of a copy is every file from its begin to its end, across the border of a log', () => {
  const MB = 1024 ** 2
  expect(walFiles('0000000200000001000000FE', '000000020000000200000001', 16 * MB)).toEqual([
    '0000000200000001000000FE',
    '0000000200000001000000FF',
    '000000020000000200000000',
    '000000020000000200000001',
  ])
  expect(walFiles('000000010000000000000003', '000000010000000100000000', 1024 * MB)).toEqual([
    '000000010000000000000003',
    '000000010000000100000000',
  ])
  expect(walFiles('000000010000000000000003', '000000010000000000000003', 16 * MB)).toHaveLength(1)
})

describe.skipIf(why !== null)(`a copy by reflink${why ? ` (${why})` : ''}`, () => {
  const scratch = makeScratchDirectory()
  let f: AgentFixture
  let s: StandbyFixture
  let unmount = () => {}
  let primary: string
  beforeAll(async () => {
    f = await AgentFixture.start(20, async ({ installation }) => {
      unmount = mountXfs(join(scratch.path, 'image'), installation.instancesDirectory)
      return undefined
    })
    s = new StandbyFixture(f)
    primary = await s.primary('shared')
    // about 200 MB
    await f.query(
      primary,
      `create table large (id bigserial primary key, filling text, n int default 0);
       insert into large (filling) select repeat(md5(i::text), 40) from generate_series(1, 130000) as i`,
    )
  }, 120_000)
  afterAll(async () => {
    await f?.agent.end()
    if (f) await endEnginesBelow(f.installation.instancesDirectory)
    unmount()
    await f?.remove()
    scratch.remove()
  })

  const used = () => {
    const { blocks, bfree, bsize } = statfsSync(f.installation.instancesDirectory)
    return (blocks - bfree) * bsize
  }
  const clone = async (standby: string, name: string) => {
    const upstream = await s.admit(primary, standby, name)
    const key = await f.begin({
      kind: 'clone-standby',
      instanceId: standby,
      upstream,
      replace: false,
    } as never)
    const ended = await f.ended(key)
    expect(ended).toMatchObject({ state: 'succeeded' })
    return {
      upstream,
      result: ended.result as TaskResult<'clone-standby'>,
      log: ended.log.map((l) => l.text),
    }
  }

  test('takes hardly any space, says which way was taken, and needs nobody to become consistent', async () => {
    const before = used()
    const standby = randomUUID()
    const { result, log, upstream } = await clone(standby, 'shared-2')
    expect(result.method).toBe('reflink')
    const certificate = (id: string) => readFileSync(join(f.dataDirectory(id), 'floe_server.pem'), 'utf8')
    expect(certificate(standby)).not.toBe(certificate(primary))
    expect(result.bytes).toBeGreaterThan(150 * 1024 ** 2)
    // a WAL file or two and the names; the data is the primary's
    expect(used() - before).toBeLessThan(80 * 1024 ** 2)
    expect(log.join('\n')).toMatch(/share.* blocks/)
    const wal = readdirSync(join(f.dataDirectory(standby), 'pg_wal')).filter((n) => /^[0-9A-F]{24}$/.test(n))
    expect(wal.length).toBeGreaterThan(0)
    await s.must({ kind: 'follow-upstream', instanceId: standby, upstream })
    await s.caughtUp(primary, standby)
    await f.must({
      kind: 'delete-instance',
      instanceId: standby,
      confirmName: 'shared-2',
      keepFiles: false,
    } as never)
    await s.dismiss(primary, 'shared-2', false)
  }, 120_000)

  test('made while every block changes, tables come and go, and full-page writes are off, equals the primary', async () => {
    await f.must({
      kind: 'change-settings',
      instanceId: primary,
      changes: [
        { name: 'polar_page_repair_guard', value: 'off' },
        { name: 'full_page_writes', value: 'off' },
      ],
    } as never)
    const writers: pg.Client[] = []
    let stop = false
    const write = async (statements: (i: number) => string) => {
      const client = await f.connect(primary)
      writers.push(client)
      for (let i = 0; !stop; i++) await client.query(statements(i))
    }
    const load = Promise.all([
      write((i) => `update large set n = n + 1 where id % 97 = ${i % 97}`),
      write(
        (i) =>
          `insert into large (filling) select repeat(md5((${i} + j)::text), 40) from generate_series(1, 500) j`,
      ),
      write((i) => `create table passing_${i} as select generate_series(1, 5000) n; drop table passing_${i}`),
      write(() => 'checkpoint'),
    ])
    const standby = randomUUID()
    const { result, upstream } = await clone(standby, 'shared-3')
    stop = true
    await load
    for (const client of writers) await client.end()
    expect(result.method).toBe('reflink')
    await s.must({ kind: 'follow-upstream', instanceId: standby, upstream })
    await s.caughtUp(primary, standby)
    const sum = `select count(*)::int as rows, sum(n)::text as changes, sum(hashtext(filling)::bigint)::text as hash from large`
    expect(await f.query(standby, sum)).toEqual(await f.query(primary, sum))
    const indexed = `set enable_seqscan = off; select count(id)::int as n from large where id > 0`
    expect(await f.query(standby, indexed)).toEqual(await f.query(primary, indexed))
    await f.must({ kind: 'stop-instance', instanceId: standby, mode: 'fast' } as never)
    const checked = spawnSync(
      join(f.installation.enginePrefix, 'bin/pg_checksums'),
      ['--check', '-D', f.dataDirectory(standby)],
      {
        encoding: 'utf8',
        cwd: '/',
        ...f.userOf(standby),
      },
    )
    expect([checked.status, checked.stderr]).toEqual([0, ''])
    expect(existsSync(join(f.dataDirectory(standby), 'backup_label'))).toBe(false)
  }, 180_000)
})
