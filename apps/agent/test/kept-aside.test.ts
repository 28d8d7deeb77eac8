import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TaskResult, TaskStatus, Upstream } from '@floe/agent-contract'
import { KEPT_ASIDE_MAX, type KeptAside, type Lsn, lsnDistance, lsnToBytes } from '@floe/domain'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { walFileName } from '../src/engine/wal/wal-file'
import { AgentFixture, asInstanceId } from './agent-fixture'
import { mountTmpfs, whyNotMounted } from './mounted-file-system'
import { StandbyFixture } from './standby-fixture'

let f: AgentFixture
let s: StandbyFixture
beforeAll(async () => {
  f = await AgentFixture.start(24)
  s = new StandbyFixture(f)
})
afterAll(() => f.remove())

type Kept = TaskResult<'keep-aside'>
const outer = (id: string) => dirname(f.dataDirectory(id))
const asides = (id: string) => readdirSync(outer(id)).filter((name) => name.startsWith('kept-aside-'))
const promote = (instanceId: string) =>
  s.must<TaskResult<'promote-instance'>>({
    kind: 'promote-instance',
    instanceId,
    beyondLsn: null,
    atLeastLsn: null,
    standbyNames: '',
  })
const fence = (instanceId: string) =>
  s.must<TaskResult<'fence-instance'>>({ kind: 'fence-instance', instanceId, reason: 'a test' })
const keepAside = (instanceId: string, upstream: Upstream, discard = false): Promise<TaskStatus> =>
  s.run({ kind: 'keep-aside', instanceId, upstream, primary: 'new-primary', discard })
async function kept(instanceId: string, upstream: Upstream): Promise<KeptAside> {
  const status = await keepAside(instanceId, upstream)
  expect(status).toMatchObject({ state: 'succeeded', fault: null })
  return (status.result as Kept).keptAside as KeptAside
}
const list = async (id: string) =>
  (await f.read.keptAside.list.query({ instanceId: asInstanceId(id) })).keptAside

/** Every piece of what is kept, as a person reads it. */
async function records(id: string, name: string, transactionsOnly: boolean): Promise<string[]> {
  const all: string[] = []
  for (let from: string | null = null, pieces = 0; pieces < 1_000; pieces++) {
    const piece = await f.read.keptAside.read.query({
      instanceId: asInstanceId(id),
      name,
      from: from as never,
      transactionsOnly,
    })
    expect(piece.stopped).toBeNull()
    all.push(...piece.records)
    if (piece.next === null) return all
    from = piece.next
  }
  throw new Error('it did not end')
}

/** A primary that goes on alone while its standby is promoted; then it is fenced. Answers what the standby is as its upstream. */
async function isolated(name: string, alone: (primary: string) => Promise<void>) {
  // whose commits would be counted, too
  const a = await s.primary(name, { autovacuum: 'off' })
  await f.query(a, 'create table ledger (n int)')
  const { id: b } = await s.standby(a, `${name}-2`)
  await s.caughtUp(a, b)
  await s.must({ kind: 'isolate-standby', instanceId: b })
  await alone(a)
  const promoted = await promote(b)
  const fenced = await fence(a)
  const upstream = await s.admit(b, a, name)
  return { a, b, upstream, forkLsn: promoted.endLsn as string, endLsn: fenced.endLsn as string }
}
const rows = async (id: string, n: number) => {
  const client = await f.connect(id)
  try {
    for (let i = 0; i < n; i++) await client.query('insert into ledger values ($1)', [i])
  } finally {
    await client.end()
  }
}

describe('what an isolated primary acknowledged alone', () => {
  let it: Awaited<ReturnType<typeof isolated>>
  beforeAll(async () => {
    it = await isolated('alone', async (a) => {
      await rows(a, 137)
      // more than one segment
      await f.query(a, 'select pg_switch_wal()')
      await f.query(a, 'insert into ledger select generate_series(1, 50000)')
      await f.query(a, 'begin; insert into ledger values (0); rollback')
    })
  }, 120_000)

  test('is kept aside, exactly counted, and readable before anything is taken back', async () => {
    const { a, upstream, forkLsn, endLsn } = it
    const status = await keepAside(a, upstream)
    expect(status.fault).toBeNull()
    const { keptAside, ...counted } = status.result as Kept
    expect(counted).toEqual({
      ownBytes: lsnDistance(forkLsn, endLsn),
      ownCommits: 138,
      discarded: false,
    })
    expect(keptAside).toMatchObject({
      forkLsn,
      endLsn,
      fromLsn: forkLsn,
      timeline: 1,
      bytes: counted.ownBytes,
      commits: 138,
      unknown: null,
      primary: { name: 'new-primary', timeline: 2 },
    })
    expect(status.log.map((line) => line.text).at(-1)).toMatch(
      /^kept aside: [\d.]+ MB of WAL, 138 committed transactions that only "alone" had, in ".*"$/,
    )
    expect(await list(a)).toEqual([keptAside])
    const commits = await records(a, keptAside?.name as string, true)
    expect(commits.filter((line) => /desc: COMMIT /.test(line))).toHaveLength(138)
    const all = await records(a, keptAside?.name as string, false)
    expect(all.filter((line) => /desc: COMMIT /.test(line))).toHaveLength(138)
    expect(all.filter((line) => /rmgr: Heap\b.*desc: INSERT\b/.test(line)).length).toBeGreaterThan(50_000)
    // by the engine's own reader, without the agent
    const { length } = execFileSync(
      join(f.installation.enginePrefix, 'bin', 'pg_waldump'),
      ['-p', join(outer(a), keptAside?.name as string), '-s', forkLsn, '-e', endLsn, '--rmgr=Transaction'],
      { encoding: 'utf8', maxBuffer: 1 << 26 },
    ).match(/desc: COMMIT /g) as string[]
    expect(length).toBe(138)
  }, 120_000)

  test('is neither lost nor doubled by a second run, whether the first had ended or was killed half-way', async () => {
    const { a, upstream } = it
    const [before] = await list(a)
    mkUnfinished(a)
    expect(await kept(a, upstream)).toEqual(before)
    expect(asides(a).sort()).toEqual([before?.name, `${before?.name}.json`].sort())
    // a copy of which something is missing does not count
    const lost = readdirSync(join(outer(a), before?.name as string)).find((n) => /^[0-9A-F]{24}$/.test(n))
    rmSync(join(outer(a), before?.name as string, lost as string))
    const again = await kept(a, upstream)
    expect(again).toMatchObject({ commits: 138 })
    expect(again.name).not.toBe(before?.name)
    await s.must({ kind: 'drop-kept-aside', instanceId: a, name: before?.name })
    expect(await list(a)).toEqual([again])
  }, 120_000)

  test('stays through the rewind, also one that was cut short, and until it is dropped', async () => {
    const { a, b, upstream } = it
    const [before] = await list(a)
    // killed in pg_rewind: what lies there now says nothing of what it had
    writeFileSync(join(outer(a), 'rewinding'), before?.name as string)
    expect(await kept(a, upstream)).toEqual(before)
    rmSync(join(outer(a), 'rewinding'))
    expect(
      await s.must({ kind: 'rewind-instance', instanceId: a, upstream, keptAside: before?.name }),
    ).toEqual({ rewound: true, refused: null })
    await s.must({ kind: 'follow-upstream', instanceId: a, upstream })
    await s.caughtUp(b, a)
    expect(await f.query(a, 'select count(*)::int as n from ledger')).toEqual([{ n: 0 }])
    expect(await list(a)).toEqual([before])
    // now it has nothing of its own
    await fence(a)
    const status = await keepAside(a, upstream)
    expect(status.result).toEqual({ ownBytes: 0, ownCommits: 0, keptAside: null, discarded: false })
    expect(status.log.at(-1)?.text).toMatch(/^nothing was only there/)
    await s.must({ kind: 'drop-kept-aside', instanceId: a, name: before?.name })
    expect(asides(a)).toEqual([])
    expect(await s.must({ kind: 'drop-kept-aside', instanceId: a, name: before?.name })).toEqual({
      dropped: false,
    })
    await f.must({ kind: 'delete-instance', instanceId: a, confirmName: 'alone', keepFiles: false })
  }, 120_000)

  const mkUnfinished = (id: string) => {
    const name = 'kept-aside-20260101T000000000Z-1'
    execFileSync('mkdir', ['-m', '700', join(outer(id), name)])
    const { uid, gid } = f.userOf(id)
    execFileSync('chown', [`${uid}:${gid}`, join(outer(id), name)])
  }
})

describe('before a new copy', () => {
  test('the same is kept, of two-phase commits too, and goes with the instance', async () => {
    const { a, b, upstream } = await isolated('copied', async (a) => {
      await f.must({
        kind: 'change-settings',
        instanceId: a,
        changes: [{ name: 'max_prepared_transactions', value: '4' }],
      } as never)
      await s.must({ kind: 'restart-instance', instanceId: a, mode: 'fast' })
      await rows(a, 20)
      await f.query(a, 'begin; insert into ledger values (1)')
      const client = await f.connect(a)
      for (const sql of [
        'begin',
        'insert into ledger values (2)',
        "prepare transaction 'two'",
        "commit prepared 'two'",
      ])
        await client.query(sql)
      await client.end()
      // as a primary that is killed in the middle of its work
      process.kill((await f.observed(a))?.postmasterPid as number, 'SIGKILL')
      await f.waitForState(a, 'crashed')
    })
    const keptAside = await kept(a, upstream)
    expect(keptAside.commits).toBe(21)
    await s.must({ kind: 'clone-standby', instanceId: a, upstream, replace: true })
    await s.must({ kind: 'follow-upstream', instanceId: a, upstream })
    await s.caughtUp(b, a)
    expect(await list(a)).toEqual([keptAside])
    expect(await records(a, keptAside.name, true)).toEqual(
      expect.arrayContaining([expect.stringContaining('desc: COMMIT_PREPARED ')]),
    )
    await f.must({ kind: 'delete-instance', instanceId: a, confirmName: 'copied', keepFiles: false })
    expect(existsSync(outer(a))).toBe(false)
  }, 120_000)

  test('what a person gives up is counted and not kept', async () => {
    const { a, upstream } = await isolated('given-up', (a) => rows(a, 5))
    const status = await keepAside(a, upstream, true)
    expect(status.result).toMatchObject({ ownCommits: 5, keptAside: null, discarded: true })
    expect(status.log.at(-1)?.text).toMatch(
      /^nothing is kept aside, as was asked: .* 5 committed transactions that only "given-up" had will be lost$/,
    )
    expect(asides(a)).toEqual([])
  }, 120_000)
})

test('a standby that holds more than the one that was promoted keeps that, one that holds less keeps nothing', async () => {
  const a = await s.primary('standbys')
  await f.query(a, 'create table ledger (n int)')
  const [promoted, more, less] = [
    (await s.standby(a, 'standbys-2')).id,
    (await s.standby(a, 'standbys-3')).id,
    (await s.standby(a, 'standbys-4')).id,
  ]
  for (const id of [promoted, more, less]) await s.caughtUp(a, id)
  // its WAL ends with a segment, and it has none of the next
  await f.query(a, 'select pg_switch_wal()')
  await s.caughtUp(a, less)
  await s.must({ kind: 'isolate-standby', instanceId: less })
  await rows(a, 2)
  await s.caughtUp(a, promoted)
  await s.must({ kind: 'isolate-standby', instanceId: promoted })
  await rows(a, 6)
  await s.caughtUp(a, more)
  await fence(a)
  await promote(promoted)
  for (const id of [more, less]) await fence(id)
  expect(await kept(more, await s.admit(promoted, more, 'standbys-3'))).toMatchObject({
    timeline: 1,
    commits: 6,
    unknown: null,
  })
  const nothing = await keepAside(less, await s.admit(promoted, less, 'standbys-4'))
  expect(nothing.fault).toBeNull()
  expect(nothing.result).toEqual({ ownBytes: 0, ownCommits: 0, keptAside: null, discarded: false })
}, 180_000)

describe('where two timelines share a number', () => {
  test('what was written since it began is kept; where WAL differs before, all that is on disk, uncounted', async () => {
    const a = await s.primary('twice')
    await f.query(a, 'create table ledger (n int)')
    const b = (await s.standby(a, 'twice-2')).id
    const c = (await s.standby(a, 'twice-3')).id
    await fence(a)
    for (const id of [b, c]) {
      await s.must({ kind: 'isolate-standby', instanceId: id })
      await promote(id)
      await rows(id, id === b ? 4 : 1)
    }
    // a standby of the one, which becomes a primary once more
    const { id: d } = await s.standby(b, 'twice-4')
    await s.caughtUp(b, d)
    await s.must({ kind: 'isolate-standby', instanceId: d })
    expect((await promote(d)).timeline).toBe(3)
    await rows(d, 2)
    for (const id of [b, d]) await fence(id)
    const own = await kept(b, await s.admit(c, b, 'twice-2'))
    // four rows, and the role that the other standby was admitted with
    expect(own).toMatchObject({ timeline: 2, commits: 5, unknown: null, primary: { timeline: 2 } })
    const all = await kept(d, await s.admit(c, d, 'twice-4'))
    expect(all).toMatchObject({
      timeline: 3,
      forkLsn: null,
      bytes: null,
      commits: null,
      unknown: expect.stringMatching(/^where its history left the primary’s is not known: .*two histories$/),
    })
    // its disk had WAL since it was copied
    const commits = await records(d, all.name, true)
    expect(commits.filter((line) => /desc: COMMIT /.test(line)).length).toBeGreaterThanOrEqual(2)
    // and of one that left it before its second promotion, on two timelines, each is counted
    const e = (await s.standby(c, 'twice-5')).id
    const { id: g } = await s.standby(c, 'twice-6')
    await s.caughtUp(c, e)
    await s.must({ kind: 'isolate-standby', instanceId: e })
    await rows(c, 3)
    await s.caughtUp(c, g)
    await s.must({ kind: 'isolate-standby', instanceId: g })
    await promote(g)
    await rows(g, 2)
    await fence(g)
    await fence(c)
    await promote(e)
    const forked = await kept(g, await s.admit(e, g, 'twice-6'))
    expect(forked).toMatchObject({ timeline: 3, commits: 5, unknown: null, primary: { timeline: 3 } })
    expect((await records(g, forked.name, true)).filter((line) => /desc: COMMIT /.test(line))).toHaveLength(5)
  }, 180_000)
})

describe('where it cannot be kept', () => {
  let it: Awaited<ReturnType<typeof isolated>>
  beforeAll(async () => {
    it = await isolated('refused', (a) => rows(a, 3))
  }, 120_000)
  const wal = () => join(f.dataDirectory(it.a), 'pg_wal')
  const refusedBy = async (code: string) => {
    const before = asides(it.a)
    const status = await keepAside(it.a, it.upstream)
    expect(status).toMatchObject({ state: 'failed', fault: { code } })
    expect(status.fault?.hint).toContain('./floe standby rejoin refused --discard-own')
    expect(asides(it.a), 'nothing half-made is left').toEqual(before)
  }

  test('because its WAL is elsewhere, or a link, or of another size, it is refused', async () => {
    const segment = walFileName(1, lsnToBytes(it.forkLsn as Lsn) >> 24n, 1n << 24n)
    const path = join(wal(), segment)
    renameSync(path, `${path}.away`)
    symlinkSync('/etc/shadow', path)
    await refusedBy('keep_aside.not_kept')
    rmSync(path)
    writeFileSync(path, 'short')
    await refusedBy('keep_aside.not_kept')
    rmSync(path)
    renameSync(`${path}.away`, path)
    renameSync(wal(), `${wal()}.away`)
    symlinkSync(`${wal()}.away`, wal())
    await refusedBy('keep_aside.unreadable')
    rmSync(wal())
    renameSync(`${wal()}.away`, wal())
  }, 120_000)

  test('because as many are kept as there may be, and none is known to be empty, it is refused', async () => {
    const first = await kept(it.a, it.upstream)
    expect(first.commits).toBe(3)
    const described = (name: string) => join(outer(it.a), `${name}.json`)
    const names = Array.from(
      { length: KEPT_ASIDE_MAX - 1 },
      (_, i) => `kept-aside-2026010${i + 1}T000000000Z-1`,
    )
    for (const [i, name] of names.entries()) {
      const text = execFileSync('cat', [described(first.name)], { encoding: 'utf8' })
      writeFileSync(
        described(name),
        JSON.stringify({ ...JSON.parse(text), name, at: i + 1, systemIdentifier: '7', commits: 1 }),
      )
    }
    await rmDescription(first.name)
    writeFileSync(
      described('kept-aside-20260109T000000000Z-1'),
      execFileSync('cat', [described(names[0] as string)], { encoding: 'utf8' }).replace(
        names[0] as string,
        'kept-aside-20260109T000000000Z-1',
      ),
    )
    const status = await keepAside(it.a, it.upstream)
    expect(status.fault).toMatchObject({
      code: 'keep_aside.too_many',
      hint: expect.stringContaining('./floe instance kept-aside refused'),
    })
    // one that is known to hold no commit makes way
    const empty = names[3] as string
    const text = execFileSync('cat', [described(empty)], { encoding: 'utf8' })
    writeFileSync(described(empty), text.replace('"commits":1', '"commits":0'))
    expect((await kept(it.a, it.upstream)).commits).toBe(3)
    expect((await list(it.a)).map((k) => k.name)).not.toContain(empty)
    expect(await list(it.a)).toHaveLength(KEPT_ASIDE_MAX)
  }, 120_000)

  const rmDescription = async (name: string) => s.must({ kind: 'drop-kept-aside', instanceId: it.a, name })
})

const noTmpfs = whyNotMounted((_, directory) => mountTmpfs(directory, 1 << 20))

test.skipIf(noTmpfs !== null)(
  'on a full disk nothing is taken back, and nothing is lost',
  async () => {
    const { a, b, upstream } = await isolated('full', (a) => rows(a, 7))
    // its directory on a file system of its own, with less room than a segment takes
    const away = `${outer(a)}.away`
    renameSync(outer(a), away)
    execFileSync('mkdir', ['-m', '711', outer(a)])
    const used = Number(execFileSync('du', ['-sk', away], { encoding: 'utf8' }).split('\t')[0]) * 1024
    const unmount = mountTmpfs(outer(a), used + 40 * 1024 * 1024)
    try {
      execFileSync('cp', ['-a', `${away}/.`, outer(a)])
      const status = await keepAside(a, upstream)
      expect(status.fault).toMatchObject({
        code: 'keep_aside.disk_full',
        hint: expect.stringContaining('--discard-own'),
      })
      expect(asides(a)).toEqual([])
    } finally {
      unmount()
    }
    rmSync(outer(a), { recursive: true })
    renameSync(away, outer(a))
    // with room again all of it is there
    expect((await kept(a, upstream)).commits).toBe(7)
    expect(await f.query(b, 'select count(*)::int as n from ledger')).toEqual([{ n: 0 }])
  },
  120_000,
)
