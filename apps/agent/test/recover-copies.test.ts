import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { TaskResult, TaskStatus } from '@floe/agent-contract'
import {
  type BlockAddress,
  blockKey,
  COPY_RECORD_BYTES,
  compareLsn,
  type Lsn,
  lsnToBytes,
  type TornList,
  tornBlocks,
} from '@floe/domain'
import { makeScratchDirectory, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { copyRecord } from '../src/engine/copies/read-pieces'
import { walFileName } from '../src/engine/wal/wal-file'
import { AgentFixture } from './agent-fixture'
import { StandbyFixture } from './standby-fixture'

// What t/021_both_torn.pl of the engine plays by hand, by the agent's tasks: a primary and its standby that one failure tore.

let f: AgentFixture
let s: StandbyFixture
const scratch = makeScratchDirectory('recover')
let primary: string
let standby: string
const TRUTH = 'select count(*)::int as n, sum(b)::int as b, md5(string_agg(c, null order by a)) as c from t'

beforeAll(async () => {
  chmodSync(scratch.path, 0o777)
  f = await AgentFixture.start(8)
  s = new StandbyFixture(f)
  primary = await s.primary('torn', { shared_buffers: '1MB', wal_keep_size: '1GB' })
  for (const setting of [
    'full_page_writes = off',
    'polar_page_repair_guard = off',
    "polar_page_repair_timeout = '2s'",
    "checkpoint_timeout = '1h'",
    'autovacuum = off',
  ])
    await f.query(primary, `alter system set ${setting}`)
  await f.must({ kind: 'restart-instance', instanceId: primary, mode: 'fast' })
  await f.query(primary, 'create table t (a int primary key, b int, c text)')
  await f.query(
    primary,
    'insert into t select n, 0, repeat(md5(n::text), 6) from generate_series(1, 12000) n',
  )
  standby = (await s.standby(primary, 'torn-2')).id
  const members = ['torn', 'torn-2']
  const ids = [primary, standby]
  const prepared = await Promise.all(
    ids.map((instanceId) =>
      s.must<TaskResult<'prepare-page-repair'>>({ kind: 'prepare-page-repair', instanceId }),
    ),
  )
  await s.must({
    kind: 'admit-page-repair',
    instanceId: primary,
    members: members.map((name, i) => ({
      name,
      verifier: prepared[i]?.repairVerifier,
      role: prepared[i]?.repairRole,
    })),
  })
  for (const [i, instanceId] of ids.entries()) {
    const other = await f.observed(ids[1 - i] as string)
    await s.must({
      kind: 'set-page-repair-sources',
      instanceId,
      sources: [{ name: members[1 - i], host: other?.connection.host, port: other?.port }],
      members,
      roles: [...s.roles.values(), ...prepared.map((p) => p.repairRole)],
    })
  }
}, 120_000)
afterAll(async () => {
  await f.remove()
  scratch.remove()
})

const stateDirectory = () => join(f.agent.home.home, 'agent')
const at = (id: string, ...path: string[]) => join(f.dataDirectory(id), ...path)
const pathOf = async (id: string, relation: string) =>
  (await f.query<{ path: string }>(id, `select pg_relation_filepath('${relation}') as path`))[0]
    ?.path as string
const redoOf = async (id: string) =>
  (await f.query<{ redo: string }>(id, 'select redo_lsn::text as redo from pg_control_checkpoint()'))[0]
    ?.redo as string

/** Destroys a sector of every `nth` page of a file that was changed after a position; answers which. */
function tear(path: string, after: string, nth: number): number[] {
  const fd = openSync(path, 'r+')
  const page = Buffer.alloc(8_192)
  const torn: number[] = []
  let changed = 0
  for (let block = 0; readSync(fd, page, 0, 8_192, block * 8_192) === 8_192; block++) {
    const lsn = `${page.readUInt32LE(0).toString(16)}/${page.readUInt32LE(4).toString(16)}`
    if (compareLsn(lsn, after) <= 0 || changed++ % nth !== 0) continue
    writeSync(fd, Buffer.alloc(512, 0xa5), 0, 512, block * 8_192 + 4_096)
    torn.push(block)
  }
  closeSync(fd)
  return torn
}

/** Both end at once and are torn; the standby begins recovery further back, and lacks the newest WAL. Answers what was committed. */
async function tearBoth(tears: { primary: string[]; standby: string[]; nthOfStandby?: number }) {
  await s.caughtUp(primary, standby)
  await f.query(primary, 'checkpoint')
  await s.caughtUp(primary, standby)
  await f.query(standby, 'checkpoint')
  const redoOfStandby = await redoOf(standby)
  await f.query(primary, 'update t set b = b + 1 where a % 3 = 0')
  await f.query(primary, 'checkpoint')
  const redoOfPrimary = await redoOf(primary)
  await f.query(primary, 'update t set b = b + 1')
  await s.caughtUp(primary, standby)
  await s.must({ kind: 'isolate-standby', instanceId: standby })
  await f.query(primary, 'select pg_switch_wal()')
  await f.query(primary, 'update t set b = b + 1 where a % 7 = 0')
  const [truth] = await f.query(primary, TRUTH)
  const paths = {
    primary: await Promise.all(tears.primary.map((r) => pathOf(primary, r))),
    standby: await Promise.all(tears.standby.map((r) => pathOf(primary, r))),
  }
  for (const instanceId of [primary, standby])
    await f.must({ kind: 'stop-instance', instanceId, mode: 'immediate' })
  return {
    truth,
    primary: paths.primary.flatMap((path) => tear(at(primary, path), redoOfPrimary, 3)),
    standby: paths.standby.flatMap((path) => tear(at(standby, path), redoOfStandby, tears.nthOfStandby ?? 3)),
  }
}

const list = async (instanceId: string) => {
  const { list } = await f.must<'list-torn'>({ kind: 'list-torn', instanceId })
  return list as TornList
}
const read = (control: string, piece: object): Promise<TaskStatus> =>
  s.run({ kind: 'read-copies', instanceId: primary, control, piece })
const write = (piece: object): Promise<TaskStatus> =>
  s.run({ kind: 'write-copies', instanceId: standby, piece })
async function done<T>(status: Promise<TaskStatus>): Promise<T> {
  const { state, result, fault } = await status
  expect(fault).toBeNull()
  expect(state).toBe('succeeded')
  return result as T
}
const detailOf = async (status: Promise<TaskStatus>) => {
  const { state, fault } = await status
  expect(state).toBe('failed')
  return `${fault?.code}: ${fault?.detail}`
}

type Lists = { ofPrimary: TornList; ofStandby: TornList }
type Sent = { data: string; crc32: number; damaged: BlockAddress[] }

const segmentOf = (lsn: string, { segmentBytes }: TornList) =>
  Number((lsnToBytes(lsn as Lsn) - 1n) / BigInt(segmentBytes))

async function bringWal({ ofPrimary, ofStandby }: Lists): Promise<void> {
  const { control, timeline, segmentBytes } = ofPrimary
  for (
    let segment = segmentOf(ofStandby.end, ofStandby);
    segment <= segmentOf(ofPrimary.end, ofPrimary);
    segment++
  )
    for (let offset = 0; offset < segmentBytes; offset += 1_048_576) {
      const stretch = { kind: 'wal', timeline, segment, offset }
      const sent = await done<Sent>(read(control, { ...stretch, segmentBytes, length: 1_048_576 }))
      await done(write({ ...stretch, ...sent }))
    }
}

async function bringPages({ ofPrimary, ofStandby }: Lists): Promise<void> {
  const blocks = tornBlocks(ofStandby) as BlockAddress[]
  for (let first = 0; first < blocks.length; first += 100) {
    const sent = await done<Sent>(
      read(ofPrimary.control, { kind: 'pages', blocks: blocks.slice(first, first + 100) }),
    )
    expect(sent.damaged).toEqual([])
    await done(write({ kind: 'pages', first, ...sent }))
  }
}

/** The standby takes the copies and then gives the primary what that lacks. */
async function bothComeUp(truth: unknown): Promise<void> {
  await f.must({ kind: 'start-instance', instanceId: standby })
  await f.must({ kind: 'start-instance', instanceId: primary })
  expect(await f.query(primary, TRUTH)).toEqual([truth])
  await done(write({ kind: 'remove' }))
  expect(existsSync(at(standby, 'page_repair.copies'))).toBe(false)
  expect(await f.query(standby, TRUTH)).toEqual([truth])
  await followAgain()
}

async function followAgain(): Promise<void> {
  const upstream = await s.admit(primary, standby, 'torn-2')
  await s.must({ kind: 'repoint-standby', instanceId: standby, upstream, wait: true })
  await s.caughtUp(primary, standby)
}

test('both torn: each lists its pages, the standby gets those of the primary and its WAL, and both come up', async () => {
  const torn = await tearBoth({ primary: ['t'], standby: ['t_pkey'] })
  expect(torn.primary.length).toBeGreaterThan(5)
  expect(torn.standby.length).toBeGreaterThan(5)

  // each waits for the other
  const alone = await s.run({ kind: 'start-instance', instanceId: primary })
  expect(alone.fault).toMatchObject({ code: 'instance.not_started' })
  expect(alone.fault?.detail).toMatch(/is torn, and no page repair source could give it/)
  const awake = { kind: 'list-torn', instanceId: primary }
  expect((await s.run(awake)).fault?.code).toBe('recover.not_stopped')
  await f.must({ kind: 'stop-instance', instanceId: primary, mode: 'immediate' })

  const lists = { ofPrimary: await list(primary), ofStandby: await list(standby) }
  const { ofPrimary, ofStandby } = lists
  // pages that replay writes anew are not named, torn or not
  for (const [of, which] of [
    [ofPrimary, torn.primary],
    [ofStandby, torn.standby],
  ] as const) {
    expect(of.blocks).toBeGreaterThan(5)
    expect(which).toEqual(expect.arrayContaining((tornBlocks(of) ?? []).map((b) => b.block)))
  }
  expect([ofPrimary.role, ofStandby.role]).toEqual(['primary', 'standby'])
  expect(compareLsn(ofStandby.redo, ofPrimary.redo)).toBeLessThan(0)
  expect(compareLsn(ofStandby.end, ofPrimary.end)).toBeLessThan(0)
  for (const id of [primary, standby]) expect((await f.observed(id))?.state).toBe('stopped')

  await done(write({ kind: 'begin', bytes: 50_000_000 }))
  await bringWal(lists)
  await bringPages(lists)
  await done(write({ kind: 'origin', header: ofPrimary.header }))
  // no page of users is left in a file of the agent's
  const kept = readdirSync(join(stateDirectory(), 'tasks')).map((name) =>
    readFileSync(join(stateDirectory(), 'tasks', name), 'utf8'),
  )
  expect(kept.filter((text) => /"kind":"(read|write)-copies"/.test(text))).toEqual([])
  await bothComeUp(torn.truth)
}, 180_000)

test('only the primary torn, and the standby without the WAL that it needs: WAL alone is enough', async () => {
  const torn = await tearBoth({ primary: ['t'], standby: [] })
  const lists = { ofPrimary: await list(primary), ofStandby: await list(standby) }
  expect(lists.ofStandby.blocks).toBe(0)
  await done(write({ kind: 'begin', bytes: 50_000_000 }))
  await bringWal(lists)
  await done(write({ kind: 'origin', header: lists.ofPrimary.header }))
  await bothComeUp(torn.truth)
}, 180_000)

test('what is not a piece of what this standby lacks is refused, and nothing is written elsewhere', async () => {
  const torn = await tearBoth({ primary: ['t'], standby: ['t_pkey'] })
  const lists = { ofPrimary: await list(primary), ofStandby: await list(standby) }
  const { ofPrimary, ofStandby } = lists
  const { control, timeline, segmentBytes } = ofPrimary
  const blocks = (tornBlocks(ofStandby) as BlockAddress[]).slice(0, 3)
  const ofHeap = (tornBlocks(ofPrimary) as BlockAddress[])[0] as BlockAddress
  const copies = at(standby, 'page_repair.copies')

  // ---- reading: numbers only, and only of an instance that rests as it did
  for (const piece of [
    { kind: 'pages', blocks: [{ ...blocks[0], path: '/etc/shadow', relation: '../../etc/shadow' }] },
    { kind: 'pages', blocks: [{ ...blocks[0], fork: 4 }] },
    { kind: 'pages', blocks: [{ ...blocks[0], block: -1 }] },
    { kind: 'pages', blocks: [{ ...blocks[0], block: 2 ** 32 }] },
    { kind: 'pages', blocks: Array.from({ length: 101 }, () => blocks[0]) },
    { kind: 'wal', timeline, segment: '../../../etc', segmentBytes, offset: 0, length: 8_192 },
    { kind: 'wal', timeline, segment: -1, segmentBytes, offset: 0, length: 8_192 },
    { kind: 'wal', timeline, segment: 1, segmentBytes, offset: 0, length: 1_048_577 },
    { kind: 'file', path: '/etc/shadow' },
  ])
    await expect(read(control, piece), JSON.stringify(piece)).rejects.toThrow(/invalid|bad|expected|too/i)
  expect(await detailOf(read('0'.repeat(64), { kind: 'pages', blocks }))).toMatch(
    /^recover.started_meanwhile/,
  )
  expect(
    await detailOf(read(control, { kind: 'pages', blocks: [{ ...blocks[0], tablespace: 16_400 }] })),
  ).toMatch(/^recover.other_tablespace/)
  const nowhere = { ...blocks[0], relation: 4_000_000_000 } as BlockAddress
  const absent = await done<Sent>(read(control, { kind: 'pages', blocks: [nowhere] }))
  expect(Buffer.from(absent.data, 'base64').readUInt32BE(20)).toBe(0xffff_ffff)
  const damaged = await done<Sent>(read(control, { kind: 'pages', blocks: [ofHeap, ...blocks] }))
  expect(damaged.damaged).toEqual([ofHeap])
  expect(damaged.data.length).toBe(Math.ceil((3 * COPY_RECORD_BYTES) / 3) * 4)
  expect(
    await detailOf(
      read(control, { kind: 'wal', timeline, segment: 9_999, segmentBytes, offset: 0, length: 8_192 }),
    ),
  ).toMatch(/^recover.no_wal/)
  // a link of the instance's superuser in a file's place
  const secret = join(stateDirectory(), 'secret')
  writeFileSync(secret, Buffer.alloc(16_384, 's'), { mode: 0o600 })
  const wal = readdirSync(at(primary, 'pg_wal'))
    .filter((name) => /^[0-9A-F]{24}$/.test(name))
    .sort()
  const [oldest = ''] = wal
  renameSync(at(primary, 'pg_wal', oldest), at(primary, 'pg_wal', 'aside'))
  symlinkSync(secret, at(primary, 'pg_wal', oldest))
  const segment = Number.parseInt(oldest.slice(16), 16)
  expect(
    (await read(control, { kind: 'wal', timeline, segment, segmentBytes, offset: 0, length: 8_192 })).fault
      ?.code,
  ).toBe('host.not_a_file')
  renameSync(at(primary, 'pg_wal', 'aside'), at(primary, 'pg_wal', oldest))

  // ---- writing
  const sent = await done<Sent>(read(control, { kind: 'pages', blocks }))
  const bytes = Buffer.from(sent.data, 'base64')
  const piece = (changed: Buffer) => ({ data: changed.toString('base64'), crc32: crc32(changed) })
  expect((await write({ kind: 'begin', bytes: 2 ** 45 })).fault?.code).toBe('recover.disk_full')
  // what leads elsewhere is replaced, not followed
  symlinkSync(stateDirectory(), copies)
  await done(write({ kind: 'begin', bytes: 1_000_000 }))
  expect(lstatSync(copies).isDirectory()).toBe(true)
  await expect(write({ kind: 'pages', first: 0, data: 'A'.repeat(1_500_000), crc32: 0 })).rejects.toThrow()
  await expect(write({ kind: 'pages', first: -1, ...piece(bytes) })).rejects.toThrow()
  await expect(write({ kind: 'wal', path: '../../x', ...piece(bytes) })).rejects.toThrow()
  const large = Buffer.alloc(101 * COPY_RECORD_BYTES)
  expect(await detailOf(write({ kind: 'pages', first: 0, ...piece(large) }))).toMatch(/more than/)
  expect(await detailOf(write({ kind: 'pages', first: 0, ...sent, crc32: (sent.crc32 ^ 1) >>> 0 }))).toMatch(
    /CRC/,
  )
  expect(await detailOf(write({ kind: 'pages', first: 1, ...sent }))).toMatch(/Record 1 is of a block/)
  expect(await detailOf(write({ kind: 'pages', first: 200_000, ...sent }))).toMatch(/is of a block/)
  expect(await detailOf(write({ kind: 'pages', first: 0, ...piece(bytes.subarray(0, 5_000)) }))).toMatch(
    /whole records/,
  )
  const flipped = Buffer.from(bytes)
  flipped[4_000] = (flipped[4_000] as number) ^ 1
  expect(await detailOf(write({ kind: 'pages', first: 0, ...piece(flipped) }))).toMatch(/Record 0 is damaged/)
  // a page that does not verify, under a CRC that is right
  const page = Buffer.from(bytes.subarray(24, 24 + 8_192))
  page[4_000] = (page[4_000] as number) ^ 1
  expect(
    await detailOf(write({ kind: 'pages', first: 0, ...piece(copyRecord(blocks[0] as BlockAddress, page)) })),
  ).toMatch(/Record 0 is damaged/)
  const zeroes = piece(Buffer.alloc(8_192))
  const first = segmentOf(ofStandby.end, ofStandby)
  for (const [stretch, why] of [
    [{ timeline: timeline + 1, segment: first, offset: 0 }, /timeline/],
    [{ timeline, segment: first - 1, offset: 0 }, /does not lack/],
    [{ timeline, segment: first + 65_536, offset: 0 }, /does not lack/],
    [{ timeline, segment: first, offset: 1 }, /whole pages/],
    [{ timeline, segment: first, offset: segmentBytes }, /beyond/],
  ] as const)
    expect(await detailOf(write({ kind: 'wal', ...stretch, ...zeroes }))).toMatch(why)
  expect(readdirSync(copies)).toEqual(['wal'])
  expect(readdirSync(join(copies, 'wal'))).toEqual([])
  // a link in the place of the file, and of the directory
  symlinkSync(secret, join(copies, 'pages'))
  expect((await write({ kind: 'pages', first: 0, ...sent })).state).toBe('failed')
  rmSync(join(copies, 'pages'))
  rmSync(join(copies, 'wal'), { recursive: true })
  mkdirSync(join(stateDirectory(), 'elsewhere'))
  symlinkSync(join(stateDirectory(), 'elsewhere'), join(copies, 'wal'))
  expect((await write({ kind: 'wal', timeline, segment: first, offset: 0, ...zeroes })).state).toBe('failed')
  expect(readdirSync(join(stateDirectory(), 'elsewhere'))).toEqual([])
  expect(readFileSync(secret).equals(Buffer.alloc(16_384, 's'))).toBe(true)
  // an origin that is not this system's primary
  for (const header of [
    '',
    ofStandby.header,
    ofPrimary.header.replace(/timeline: \d+/, 'timeline: 7'),
    'x'.repeat(4_001),
  ])
    expect((await write({ kind: 'origin', header }).catch(() => ({ state: 'failed' }))).state).toBe('failed')
  expect(existsSync(join(copies, 'origin'))).toBe(false)
  // a list that is none, or names what it does not count
  const own = readFileSync(at(standby, 'page_repair.torn'), 'utf8')
  for (const forged of [
    own.replace(/ 0 (\d+) base/, ' 0 ../$1 base'),
    `${own}1663 5 1 0 1 /etc/shadow\n`,
    'x',
  ]) {
    writeFileSync(at(standby, 'page_repair.torn'), forged)
    expect((await write({ kind: 'pages', first: 0, ...sent })).fault?.code).toBe('recover.no_list')
  }
  writeFileSync(at(standby, 'page_repair.torn'), own)

  // ---- killed in each of them, and repeated
  const key = await f.begin({ kind: 'list-torn', instanceId: standby })
  await waitUntil(
    'its engine reads the WAL',
    async () => existsSync(at(standby, 'postmaster.pid')),
    20_000,
    1,
  )
  await f.agent.end('SIGKILL')
  await f.agent.start()
  const again = await done<TaskResult<'list-torn'>>(f.ended(key))
  expect(again.list?.relations).toEqual(ofStandby.relations)
  // an engine that was killed and that nobody has reaped yet looks alive to the next one
  const { uid, gid } = lstatSync(at(standby, 'PG_VERSION'))
  const parent = spawn('/bin/sh', ['-c', 'true & echo $!; exec sleep 1'], { uid, gid, cwd: '/' })
  const [ended] = (await once(parent.stdout, 'data')) as [Buffer]
  writeFileSync(at(standby, 'postmaster.pid'), `${String(ended).trim()}\n`)
  chownSync(at(standby, 'postmaster.pid'), uid, gid)
  expect((await list(standby)).relations).toEqual(ofStandby.relations)
  await done(write({ kind: 'begin', bytes: 50_000_000 }))
  for (const half of ['read', 'write'] as const) {
    const part =
      half === 'read'
        ? { kind: 'read-copies', instanceId: primary, control, piece: { kind: 'pages', blocks } }
        : { kind: 'write-copies', instanceId: standby, piece: { kind: 'pages', first: 0, ...sent } }
    await f.begin(part as never)
    await f.agent.end('SIGKILL')
    await f.agent.start()
    await done(s.run(part))
  }
  await bringWal(lists)
  await bringPages(lists)
  await bringPages(lists)
  // cut in the middle, as a kill of the whole host leaves it
  truncateSync(join(copies, 'pages'), 12_345)
  await bringPages(lists)
  await done(write({ kind: 'origin', header: ofPrimary.header }))
  await bothComeUp(torn.truth)
}, 240_000)

// ---- what nobody has whole

/** A base backup of an instance as a person makes it, as the instance's user. */
async function backUp(id: string, name: string): Promise<string> {
  const directory = join(scratch.path, name)
  const port = String((await f.observed(id))?.port)
  asUserOf(
    id,
    'pg_basebackup',
    '-D',
    directory,
    '-c',
    'fast',
    '-h',
    '127.0.0.1',
    '-p',
    port,
    '-U',
    'postgres',
  )
  return directory
}

function asUserOf(id: string, program: string, ...args: string[]): string {
  const r = spawnSync(join(f.installation.enginePrefix, 'bin', program), args, {
    cwd: '/',
    env: { PGPASSWORD: 'open sesame', LC_ALL: 'C' },
    encoding: 'utf8',
    ...f.userOf(id),
  })
  if (r.status !== 0) throw new Error(`${program}: ${r.stdout}${r.stderr}`)
  return r.stdout
}

function copied(backup: string, name: string): string {
  const directory = join(scratch.path, name)
  const { uid, gid } = lstatSync(backup)
  const r = spawnSync('cp', ['-r', backup, directory], { uid, gid })
  expect(r.status).toBe(0)
  return directory
}

/** Of the primary's files, and of what lies beside them: whatever a restore changed would show. */
const unchanged = () => ({
  beside: readdirSync(join(f.dataDirectory(primary), '..')).sort(),
  control: readFileSync(at(primary, 'global/pg_control')).toString('hex'),
  torn: readFileSync(at(primary, 'page_repair.torn'), 'utf8'),
  wal: readdirSync(at(primary, 'pg_wal')).sort(),
})

/** A list that ends earlier, under a CRC that is right. */
function endingAt(text: string, end: string): string {
  const crcAt = text.indexOf('\ncrc32: ') + 1
  const lines = text.slice(0, crcAt).replace(/^end: .*$/m, `end: ${end}`)
  const rest = text.slice(text.indexOf('\n', crcAt))
  return `${lines}crc32: ${crc32(lines).toString(16).toUpperCase().padStart(8, '0')}${rest}`
}

test('torn on both: a base backup that is restored beside the primary gives what nobody has whole', async () => {
  const backup = await backUp(primary, 'base')
  await f.query(primary, 'update t set b = b + 1 where a % 5 = 0')
  await f.query(primary, 'select pg_switch_wal()')
  const torn = await tearBoth({ primary: ['t'], standby: ['t', 't_pkey'], nthOfStandby: 1 })
  const lists = { ofPrimary: await list(primary), ofStandby: await list(standby) }
  const { ofPrimary, ofStandby } = lists
  const { control } = ofPrimary
  const ofBoth = new Set((tornBlocks(ofPrimary) ?? []).map(blockKey))
  const blocks = tornBlocks(ofStandby) as BlockAddress[]
  const lost = blocks.filter((block) => ofBoth.has(blockKey(block)))
  expect(lost.length).toBeGreaterThan(5)
  expect(lost.length).toBeLessThan(blocks.length)
  const task = (more: object = {}) => ({
    kind: 'restore-pages',
    instanceId: primary,
    control,
    backupDirectory: backup,
    walDirectory: null,
    redo: ofStandby.redo,
    blocks: ofStandby.blocks,
    relations: ofStandby.relations,
    ...more,
  })
  const before = unchanged()
  const refused = async (more: object) => {
    const { state, fault } = await s.run(task(more))
    expect(state).toBe('failed')
    expect(unchanged()).toEqual(before)
    return fault?.code
  }

  // ---- a directory that a person names is a stranger
  expect(await refused({ control: '0'.repeat(64) })).toBe('recover.started_meanwhile')
  expect(await refused({ backupDirectory: join(scratch.path, 'nowhere') })).toBe('restore.no_directory')
  expect(await refused({ backupDirectory: scratch.path })).toBe('restore.no_backup')
  expect(await refused({ blocks: ofStandby.blocks + 1 })).toBe('recover.no_list')
  const linked = copied(backup, 'linked')
  symlinkSync(at(primary, 'postgresql.conf'), join(linked, 'base/1/link'))
  expect(await refused({ backupDirectory: linked })).toBe('restore.link')
  const closed = copied(backup, 'closed')
  chownSync(closed, 0, 0)
  chmodSync(closed, 0o700)
  if (f.userOf(primary).uid !== 0)
    expect(await refused({ backupDirectory: closed })).toBe('restore.not_readable')
  // nothing that is configured in it runs
  const hostile = copied(backup, 'hostile')
  const ran = join(scratch.path, 'ran')
  const { uid, gid } = lstatSync(backup)
  for (const name of ['postgresql.conf', 'postgresql.auto.conf']) {
    const words = `restore_command = 'touch ${ran}'\narchive_cleanup_command = 'touch ${ran}'\nrecovery_end_command = 'touch ${ran}'\nshared_preload_libraries = 'nowhere'\nprimary_conninfo = 'host=127.0.0.1'\n`
    appendFileSync(join(hostile, name), words)
  }
  await done(s.run(task({ backupDirectory: hostile })))
  expect(existsSync(ran)).toBe(false)
  await done(s.run({ kind: 'drop-restored-pages', instanceId: primary }))
  expect(unchanged()).toEqual(before)

  // ---- what is not of this primary's history, or does not reach its end
  const stranger = await f.createRunning({ name: 'stranger' })
  const other = await backUp(stranger, 'other')
  spawnSync('chown', ['-R', `${uid}:${gid}`, other])
  expect(await refused({ backupDirectory: other })).toBe('restore.other_system')
  const promoted = copied(backup, 'promoted')
  // what it lists is not what a server that ran there leaves
  rmSync(join(promoted, 'backup_manifest'))
  writeFileSync(join(promoted, 'recovery.signal'), '')
  writeFileSync(
    join(promoted, 'postgresql.conf'),
    `restore_command = 'false'\nlisten_addresses = ''\nport = 5499\nunix_socket_directories = '${scratch.path}'\n`,
  )
  writeFileSync(join(promoted, 'postgresql.auto.conf'), '')
  for (const name of ['recovery.signal', 'postgresql.conf', 'postgresql.auto.conf'])
    chownSync(join(promoted, name), uid, gid)
  asUserOf(primary, 'pg_ctl', '-D', promoted, '-w', '-l', join(scratch.path, 'promoted.log'), 'start')
  await waitUntil('the copy has a timeline of its own', async () =>
    existsSync(join(promoted, 'pg_wal/00000002.history')),
  )
  asUserOf(primary, 'pg_ctl', '-D', promoted, '-w', '-m', 'fast', 'stop')
  expect(await refused({ backupDirectory: promoted })).toBe('restore.other_timeline')
  const [, begun = ''] =
    /^CHECKPOINT LOCATION: (\S+)$/m.exec(readFileSync(join(backup, 'backup_label'), 'utf8')) ?? []
  const own = before.torn
  writeFileSync(at(primary, 'page_repair.torn'), endingAt(own, begun))
  expect((await s.run(task())).fault?.code).toBe('restore.backup_ahead')
  writeFileSync(at(primary, 'page_repair.torn'), own)
  // the standby's recovery would begin after what the restored files have for certain
  expect(await refused({ redo: ofPrimary.end })).toBe('restore.not_recovered')
  // a segment that lies nowhere is named before a byte is copied; from an archive it is taken
  const archive = join(scratch.path, 'archive')
  mkdirSync(archive)
  const gap = walFileName(
    ofPrimary.timeline,
    BigInt(segmentOf(ofPrimary.redo, ofPrimary) - 1),
    BigInt(ofPrimary.segmentBytes),
  )
  expect(existsSync(join(backup, 'pg_wal', gap))).toBe(false)
  renameSync(at(primary, 'pg_wal', gap), join(archive, gap))
  const missing = await s.run(task())
  expect(missing.fault).toMatchObject({ code: 'restore.wal_missing' })
  expect(missing.fault?.detail).toContain(gap.slice(8))
  // one that is there and is not what it is named ends the replay, not its promise
  const cut = join(scratch.path, 'cut')
  mkdirSync(cut)
  writeFileSync(join(cut, gap), Buffer.alloc(ofPrimary.segmentBytes))
  expect((await s.run(task({ walDirectory: cut }))).fault?.code).toBe('restore.wal_ends_early')

  // ---- killed in it, and run again
  const key = await f.begin(task({ walDirectory: archive }) as never)
  const beside = () => readdirSync(join(f.dataDirectory(primary), '..'))
  await waitUntil(
    'the backup is being restored',
    async () => beside().some((n) => n.startsWith('restore-')),
    30_000,
    1,
  )
  await f.agent.end('SIGKILL')
  await f.agent.start()
  const restored = await done<TaskResult<'restore-pages'>>(f.ended(key))
  expect(restored.blocks).toBe(ofStandby.blocks)
  expect(compareLsn(restored.redo, ofStandby.redo)).toBeGreaterThanOrEqual(0)
  expect(compareLsn(restored.redo, ofPrimary.end)).toBeLessThan(0)
  expect(beside().filter((n) => n.startsWith('restore'))).toEqual(['restored-pages'])

  await done(write({ kind: 'begin', bytes: 50_000_000 }))
  await bringWal(lists)
  const restoredPages = async (first: number, count: number, all: boolean) =>
    done<Sent>(
      read(control, {
        kind: 'pages',
        blocks: blocks.slice(first, first + count),
        restored: { first, all },
      }),
    )
  for (const block of lost.slice(0, 5)) {
    const first = blocks.indexOf(block)
    expect((await done<Sent>(read(control, { kind: 'pages', blocks: [block] }))).damaged).toEqual([block])
    const sent = await restoredPages(first, 1, true)
    expect(sent.damaged).toEqual([])
    // what is not whole there comes from the backup as well, though no list names it
    expect(await restoredPages(first, 1, false)).toEqual(sent)
    // another block's record is none of this one
    const other = { kind: 'pages', blocks: [block], restored: { first: first + 1, all: true } }
    expect((await done<Sent>(read(control, other))).damaged).toEqual([block])
  }
  // some pieces from the backup alone, some of it only what the primary lacks
  expect(blocks.length).toBeGreaterThan(100)
  for (let first = 0; first < blocks.length; first += 100) {
    const sent = await restoredPages(first, 100, first % 200 === 0)
    expect(sent.damaged).toEqual([])
    await done(write({ kind: 'pages', first, ...sent }))
  }
  await done(write({ kind: 'origin', header: ofPrimary.header }))
  await bothComeUp(torn.truth)
  await done(s.run({ kind: 'drop-restored-pages', instanceId: primary }))
  expect(beside().filter((n) => n.startsWith('restore'))).toEqual([])
  // every page of both is right
  for (const instanceId of [standby, primary]) {
    await f.must({ kind: 'stop-instance', instanceId, mode: 'fast' })
    expect(asUserOf(instanceId, 'pg_checksums', '--check', '-D', f.dataDirectory(instanceId))).toMatch(
      /Bad checksums:\s+0/,
    )
  }
  for (const instanceId of [primary, standby]) await f.must({ kind: 'start-instance', instanceId })
  await s.caughtUp(primary, standby)
}, 300_000)

test('an instance that was stopped in order has no list', async () => {
  await f.must({ kind: 'stop-instance', instanceId: standby, mode: 'fast' })
  const { list, why } = await f.must<'list-torn'>({ kind: 'list-torn', instanceId: standby })
  expect(list).toBeNull()
  expect(why).toMatch(/no torn pages to be listed/)
  expect((await write({ kind: 'begin', bytes: 0 })).fault?.code).toBe('recover.no_list')
})
