import { execFile, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { TaskResult, Upstream } from '@floe/agent-contract'
import { type Lsn, lsnDistance, lsnToBytes, ReplicationObserved } from '@floe/domain'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { walFileName } from '../src/engine/wal/wal-file'
import { AgentFixture } from './agent-fixture'
import { startImpostor } from './impostor'
import { StandbyFixture } from './standby-fixture'

let f: AgentFixture
let s: StandbyFixture
beforeAll(async () => {
  f = await AgentFixture.start(40)
  s = new StandbyFixture(f)
})
afterAll(() => f.remove())

/** Every moment at which the agent is killed is tried by --long only. */
const long = process.env.FLOE_TEST_LONG === '1'

const directoryOf = (id: string) => `${f.installation.instancesDirectory}/${id}`
const seen = async (id: string) => {
  const observed = await f.observed(id)
  return observed?.replication ? ReplicationObserved.parse(observed.replication) : null
}

/** Starts an engine as a person would: pg_ctl by hand, past the agent. */
function startByHand(id: string): void {
  const r = spawnSync(
    join(f.installation.enginePrefix, 'bin/pg_ctl'),
    [
      '-D',
      `${directoryOf(id)}/pgdata`,
      '-w',
      '-l',
      `${directoryOf(id)}/log/by-hand.log`,
      '-o',
      `-c port=${port(id)} -c unix_socket_directories='${f.installation.socketDirectory}/${id.slice(-12)}'`,
      'start',
    ],
    { cwd: '/', ...f.userOf(id), encoding: 'utf8' },
  )
  expect([r.status, r.stderr]).toEqual([0, r.stderr])
}
const port = (id: string) =>
  (
    JSON.parse(readFileSync(join(f.agent.home.home, 'agent/instances', `${id}.json`), 'utf8')) as {
      port: number
    }
  ).port

describe('a standby', () => {
  afterAll(() => f.stopAll())
  let primary: string
  let standby: string
  beforeAll(async () => {
    primary = await s.primary('alpha', { work_mem: '7MB' })
    await f.query(primary, 'create table kept as select generate_series(1, 1000) as n')
    standby = (await s.standby(primary, 'alpha-2')).id
  })

  test('is a copy that follows, takes no write, and has its primary’s settings', async () => {
    await f.query(primary, 'insert into kept select generate_series(1001, 1100)')
    await s.caughtUp(primary, standby)
    expect(
      await f.query(standby, "select count(*)::int as n, current_setting('work_mem') as mem from kept"),
    ).toEqual([{ n: 1100, mem: '7MB' }])
    await expect(f.query(standby, 'insert into kept values (0)')).rejects.toThrow('read-only')
    const observed = await waitUntil('its role is seen', async () => {
      const o = await f.observed(standby)
      return o?.role === 'standby' ? o : null
    })
    expect(observed).toMatchObject({ state: 'running', role: 'standby', timeline: 1 })
    expect(observed.systemIdentifier).toBe((await f.observed(primary))?.systemIdentifier)
  })

  test('replicates as a role of its own with a password that only its host has, through a slot of its own', async () => {
    const roles = await f.query(
      primary,
      `select rolname, rolreplication, rolsuper from pg_roles where rolname like 'floe\\_standby%'`,
    )
    expect(s.roles.get('alpha-2')).toMatch(/^floe_standby_alpha_2_[0-9a-f]{16}$/)
    expect(roles).toEqual([{ rolname: s.roles.get('alpha-2'), rolreplication: true, rolsuper: false }])
    expect((await f.observed(standby))?.logins).toEqual({ replication: s.roles.get('alpha-2'), repair: null })
    const passFile = `${directoryOf(standby)}/replication.pgpass`
    expect(statSync(passFile).mode & 0o777).toBe(0o600)
    const conninfo = await f
      .query<{ c: string }>(standby, `select current_setting('primary_conninfo') as c`)
      .catch(() => [])
    const password = readFileSync(passFile, 'utf8').trim().split(':').at(-1) as string
    expect(JSON.stringify(conninfo)).not.toContain(password)
    expect(readFileSync(`${directoryOf(standby)}/pgdata/floe.cluster.conf`, 'utf8')).not.toContain(password)
    expect(readFileSync(`${directoryOf(primary)}/pgdata/floe_hba.conf`, 'utf8')).toContain(
      `"${s.roles.get('alpha-2')}"`,
    )
  })

  describe('over TLS', () => {
    /** psql as the engine's user, with what the standby reaches its primary by, changed. */
    const asStandby = async (changed: string) => {
      const [{ conninfo } = { conninfo: '' }] = await f.query<{ conninfo: string }>(
        standby,
        `select current_setting('primary_conninfo') as conninfo`,
      )
      const psql = promisify(execFile)(
        join(f.installation.enginePrefix, 'bin/psql'),
        [
          '-XAtd',
          `${conninfo} dbname=postgres ${changed}`,
          '-c',
          'select ssl from pg_stat_ssl where pid = pg_backend_pid()',
        ],
        { cwd: '/', ...f.userOf(standby) },
      )
      return psql.then(
        (r) => r.stdout.trim(),
        (error: { stderr: string }) => error.stderr.trim(),
      )
    }

    test('replicates encrypted, with a certificate that is not its primary’s', async () => {
      expect(await asStandby('')).toBe('t')
      expect(
        await f.query(
          primary,
          `select ssl, version from pg_stat_ssl join pg_stat_replication using (pid) where application_name = 'alpha-2'`,
        ),
      ).toEqual([{ ssl: true, version: 'TLSv1.3' }])
      const pem = (id: string) => readFileSync(`${directoryOf(id)}/pgdata/floe_server.pem`, 'utf8')
      expect(pem(standby)).not.toBe(pem(primary))
    })

    test('is let in by no unencrypted connection', async () => {
      expect(await asStandby('sslmode=disable channel_binding=prefer')).toMatch(
        /pg_hba\.conf rejects connection .* no encryption/,
      )
    })

    test('finds out who stands between it and its primary', async () => {
      const impostor = await startImpostor(port(primary))
      try {
        expect(await asStandby(`port=${impostor.port}`)).toMatch(/SCRAM channel binding check failed/)
        expect(impostor.passedOn()).toBe(1)
      } finally {
        impostor.close()
      }
    })
  })

  test('is seen from both sides: positions in order, lag in bytes, slot, receiver', async () => {
    const onPrimary = await waitUntil('the primary sees it stream', async () => {
      const r = await seen(primary)
      return r?.standbys[0]?.state === 'streaming' && r.slots[0]?.active ? r : null
    })
    expect(onPrimary.standbys).toMatchObject([{ applicationName: 'alpha-2', syncState: 'async' }])
    const [line] = onPrimary.standbys
    for (const [a, b] of [
      [line?.replayedLsn, line?.flushedLsn],
      [line?.flushedLsn, line?.writtenLsn],
      [line?.writtenLsn, line?.sentLsn],
      [line?.sentLsn, onPrimary.endLsn],
    ])
      expect(lsnDistance(a, b)).toBeGreaterThanOrEqual(0)
    expect(onPrimary.slots).toMatchObject([{ name: 'floe_alpha_2', active: true, walStatus: 'reserved' }])
    const onStandby = await waitUntil('the standby sees its receiver', async () => {
      const r = await seen(standby)
      return r?.receiver ? r : null
    })
    expect(onStandby.receiver).toMatchObject({
      status: 'streaming',
      senderHost: '127.0.0.1',
      senderPort: port(primary),
      slotName: 'floe_alpha_2',
    })
    expect(onStandby.timeline).toBe(1)
  })

  test('streams again after a restart of either', async () => {
    await f.must({ kind: 'restart-instance', instanceId: standby, mode: 'immediate' })
    await f.must({ kind: 'restart-instance', instanceId: primary, mode: 'fast' })
    await f.query(primary, 'insert into kept values (2000)')
    await s.caughtUp(primary, standby)
  })

  test('waits for whom it is told: a commit needs the standby, and is seen waiting when it is gone', async () => {
    await s.must({
      kind: 'set-synchronous',
      instanceId: primary,
      standbyNames: 'FIRST 1 ("alpha-2")',
    })
    await f.query(primary, 'insert into kept values (3000)')
    await f.must({ kind: 'stop-instance', instanceId: standby, mode: 'fast' })
    const hanging = f.query(primary, 'insert into kept values (3001)')
    const waiting = await waitUntil('the wait is seen', async () => {
      const r = await seen(primary)
      return r && r.waitingCommits > 0 ? r : null
    })
    expect(waiting).toMatchObject({ waitingCommits: 1, standbys: [] })
    // what brings standbys back must not wait for them
    await s.admit(primary, standby, 'alpha-2')
    await f.must({ kind: 'start-instance', instanceId: standby })
    await hanging
    await s.must({ kind: 'set-synchronous', instanceId: primary, standbyNames: '' })
  })

  test('a changed level holds for a database or a role', async () => {
    await s.must({
      kind: 'set-commit-mode',
      instanceId: primary,
      database: 'postgres',
      role: 'postgres',
      commitMode: 'remote_apply',
    })
    expect(await f.query(primary, 'show synchronous_commit')).toEqual([
      { synchronous_commit: 'remote_apply' },
    ])
    // also what was set past Floe is listed
    await f.query(primary, 'alter role postgres set synchronous_commit = off')
    const { commitModes } = await f.read.commitMode.list.query({ instanceId: primary as never })
    expect(commitModes).toEqual([
      { database: null, role: 'postgres', commitMode: 'off' },
      { database: 'postgres', role: 'postgres', commitMode: 'remote_apply' },
    ])
    await f.query(primary, 'alter role postgres reset synchronous_commit')
    await s.must({
      kind: 'set-commit-mode',
      instanceId: primary,
      database: 'postgres',
      role: 'postgres',
      commitMode: null,
    })
    const refused = await s.run({
      kind: 'set-commit-mode',
      instanceId: primary,
      database: 'nowhere',
      role: null,
      commitMode: 'off',
    })
    expect(refused.fault).toMatchObject({
      code: 'commit_mode.not_set',
      message: 'database "nowhere" does not exist',
    })
  })

  test('leaves neither slot nor role behind', async () => {
    const { id } = await s.standby(primary, 'alpha-3')
    await f.must({ kind: 'delete-instance', instanceId: id, confirmName: 'alpha-3', keepFiles: false })
    await s.dismiss(primary, 'alpha-3', false)
    expect(
      await f.query(
        primary,
        `select (select count(*)::int from pg_replication_slots where slot_name = 'floe_alpha_3')
              + (select count(*)::int from pg_roles where rolname like 'floe\\_standby\\_alpha\\_3%') as left`,
      ),
    ).toEqual([{ left: 0 }])
    await s.dismiss(primary, 'alpha-3', false)
  })
})

describe('a change of roles', () => {
  afterAll(() => f.stopAll())
  let a: string
  let b: string
  beforeAll(async () => {
    a = await s.primary('beta')
    await f.query(a, 'create table kept (n int)')
    b = (await s.standby(a, 'beta-2')).id
    await s.admit(a, a, 'beta', false)
  })

  test('in order loses nothing, and the former primary follows', async () => {
    const back = await s.admitPrepared(b, 'beta', null, true)
    await f.query(a, 'insert into kept select generate_series(1, 100)')
    await s.must({ kind: 'checkpoint-instance', instanceId: a })
    const { shutdownLsn } = await s.must<TaskResult<'demote-instance'>>({
      kind: 'demote-instance',
      instanceId: a,
      upstream: back,
    })
    expect(await f.observed(a)).toMatchObject({
      state: 'stopped',
      fenced: { reason: 'it was demoted in a switchover' },
    })
    const promoted = await s.must<TaskResult<'promote-instance'>>({
      kind: 'promote-instance',
      instanceId: b,
      beyondLsn: shutdownLsn,
      atLeastLsn: null,
      standbyNames: '',
      ofCluster: true,
    })
    expect(promoted.timeline).toBe(2)
    const known = { instanceId: b, timeline: 2 }
    expect((await f.observed(b))?.primaryKnown).toMatchObject(known)
    await f.query(b, 'insert into kept values (101)')
    await s.must({ kind: 'follow-upstream', instanceId: a, upstream: back, primary: known })
    expect((await f.observed(a))?.primaryKnown).toMatchObject(known)
    await s.caughtUp(b, a)
    expect(await f.query(a, 'select count(*)::int as n, pg_is_in_recovery() as standby from kept')).toEqual([
      { n: 101, standby: true },
    ])
    expect((await f.observed(a))?.fenced).toBeNull()
    await s.dismiss(a, 'beta-2', true)
  })

  test('a standby that lacks WAL is not promoted, and says how many bytes', async () => {
    const refused = await s.run({
      kind: 'promote-instance',
      instanceId: a,
      beyondLsn: null,
      atLeastLsn: 'FF/0',
      standbyNames: '',
    })
    expect(refused.fault).toMatchObject({ code: 'promote.behind' })
    expect(refused.fault?.detail).toMatch(/: [\d,]+ bytes are missing\.$/)
    expect(await f.query(a, 'select pg_is_in_recovery() as standby')).toEqual([{ standby: true }])
  })

  test('a fenced primary takes no write, however it is started, until it is rewound and follows', async () => {
    // b is the primary; it is killed, and a takes over with one row less than b wrote
    await s.must({ kind: 'isolate-standby', instanceId: a })
    await f.query(b, 'insert into kept values (999)')
    process.kill((await f.observed(b))?.postmasterPid as number, 'SIGKILL')
    await f.waitForState(b, 'crashed')
    const fenced = await s.must<TaskResult<'fence-instance'>>({
      kind: 'fence-instance',
      instanceId: b,
      reason: '"beta" took over',
    })
    const isolated = await s.must<TaskResult<'isolate-standby'>>({ kind: 'isolate-standby', instanceId: a })
    expect(lsnDistance(isolated.endLsn, fenced.endLsn)).toBeGreaterThan(0)
    await s.must({
      kind: 'promote-instance',
      instanceId: a,
      beyondLsn: null,
      atLeastLsn: isolated.endLsn,
      standbyNames: '',
    })
    for (const task of [
      { kind: 'start-instance', instanceId: b },
      { kind: 'restart-instance', instanceId: b, mode: 'fast' },
    ]) {
      const refused = await s.run(task)
      expect(refused.fault).toMatchObject({ code: 'instance.fenced', message: 'instance "beta-2" is fenced' })
    }
    startByHand(b)
    // a hot standby, or one that has nothing consistent to show: either way no write gets in
    await expect(f.query(b, 'insert into kept values (1)')).rejects.toThrow(
      /read-only|not yet accepting connections/,
    )
    expect(existsSync(`${directoryOf(b)}/pgdata/standby.signal`)).toBe(true)
    await f.must({ kind: 'stop-instance', instanceId: b, mode: 'fast' })

    const upstream = await s.admit(a, b, 'beta-2')
    const impostor = await startImpostor(port(a))
    try {
      const asked = await s.run({
        kind: 'rewind-instance',
        instanceId: b,
        upstream: { ...upstream, port: impostor.port },
      })
      expect(asked.fault).toMatchObject({ code: 'standby.no_upstream' })
      expect(asked.fault?.detail).toContain('channel binding')
    } finally {
      impostor.close()
    }
    const certificate = readFileSync(`${directoryOf(b)}/pgdata/floe_server.pem`, 'utf8')
    // WAL of another history before the point at which they parted
    const segment = `${directoryOf(b)}/pgdata/pg_wal/${walFileName(2, lsnToBytes(isolated.endLsn as Lsn) >> 24n, 1n << 24n)}`
    const whole = readFileSync(segment)
    const other = Buffer.from(whole)
    other.writeUInt8(other.readUInt8(200) ^ 1, 200)
    writeFileSync(segment, other)
    expect(await s.must({ kind: 'rewind-instance', instanceId: b, upstream })).toMatchObject({
      rewound: false,
      refused: expect.stringContaining('two histories'),
    })
    writeFileSync(segment, whole)
    const rewound = await s.must<TaskResult<'rewind-instance'>>({
      kind: 'rewind-instance',
      instanceId: b,
      upstream,
    })
    expect(rewound).toEqual({ rewound: true, refused: null })
    // pg_rewind had brought the primary's
    expect(readFileSync(`${directoryOf(b)}/pgdata/floe_server.pem`, 'utf8')).toBe(certificate)
    await s.must({ kind: 'follow-upstream', instanceId: b, upstream })
    await f.query(a, 'insert into kept values (1000)')
    await s.caughtUp(a, b)
    expect(
      await f.query(b, 'select count(*) filter (where n = 999)::int as lost, count(*)::int as n from kept'),
    ).toEqual([{ lost: 0, n: 102 }])
  })

  test('pg_rewind refuses a source without full-page writes, and a copy does it', async () => {
    await f.must({
      kind: 'change-settings',
      instanceId: a,
      changes: [
        { name: 'full_page_writes', value: 'off' },
        { name: 'polar_page_repair_guard', value: 'off' },
      ],
    })
    await s.must({ kind: 'isolate-standby', instanceId: b })
    await s.must({
      kind: 'promote-instance',
      instanceId: b,
      beyondLsn: null,
      atLeastLsn: null,
      standbyNames: '',
    })
    await s.must({ kind: 'fence-instance', instanceId: b, reason: 'test' })
    const upstream = await s.admit(a, b, 'beta-2')
    const refused = await s.must<TaskResult<'rewind-instance'>>({
      kind: 'rewind-instance',
      instanceId: b,
      upstream,
    })
    expect(refused.rewound).toBe(false)
    expect(refused.refused).toContain('full_page_writes off')
    const copied = await s.must<TaskResult<'clone-standby'>>({
      kind: 'clone-standby',
      instanceId: b,
      upstream,
      replace: true,
    })
    expect(copied.method).toBe('basebackup')
    await s.must({ kind: 'follow-upstream', instanceId: b, upstream })
    expect(readdirSync(directoryOf(b)).filter((e) => e.startsWith('pgdata'))).toEqual(['pgdata'])
  })

  test('a demotion that is taken back leaves the primary it was', async () => {
    const upstream = await s.admit(a, b, 'beta-2')
    await s.must({ kind: 'demote-instance', instanceId: a, upstream: { ...upstream, port: port(b) } })
    await s.must({ kind: 'restore-primary', instanceId: a })
    await f.query(a, 'insert into kept values (2000)')
    expect(existsSync(`${directoryOf(a)}/pgdata/standby.signal`)).toBe(false)
    expect((await f.observed(a))?.fenced).toBeNull()
  })
})

describe('a standby that comes back', () => {
  afterAll(() => f.stopAll())
  let a: string
  let b: string
  let c: string
  let upstream: Upstream
  const rows = async (id: string) =>
    (await f.query<{ n: number }>(id, 'select count(*)::int as n from kept'))[0]?.n
  /** What the rejoin operation has the agent do, from the rewind on. */
  async function rejoin(id: string, to: Upstream): Promise<TaskResult<'rewind-instance'>> {
    const rewound = await s.must<TaskResult<'rewind-instance'>>({
      kind: 'rewind-instance',
      instanceId: id,
      upstream: to,
    })
    if (rewound.rewound) await s.must({ kind: 'follow-upstream', instanceId: id, upstream: to })
    return rewound
  }
  beforeAll(async () => {
    a = await s.primary('delta')
    await f.query(a, 'create table kept as select generate_series(1, 1000) as n')
    ;({ id: b, upstream } = await s.standby(a, 'delta-2'))
    c = (await s.standby(a, 'delta-3')).id
  })

  test.each(['fenced', 'crashed, then fenced'])('%s, has nothing of its own to take back', async (how) => {
    const before = await rows(a)
    await f.query(a, 'insert into kept select generate_series(1, 100)')
    if (how !== 'fenced') {
      process.kill((await f.observed(b))?.postmasterPid as number, 'SIGKILL')
      await f.waitForState(b, 'crashed')
    }
    await s.must({ kind: 'fence-instance', instanceId: b, reason: 'test' })
    // what is written while it is away lies where it would write a checkpoint of its own
    await f.query(a, 'insert into kept select generate_series(1, 100)')
    expect(await rejoin(b, upstream)).toEqual({ rewound: true, refused: null })
    await f.query(a, 'insert into kept select generate_series(1, 100)')
    await s.caughtUp(a, b)
    expect(await rows(b)).toBe((before ?? 0) + 300)
  })

  test('is copied anew when its history and the primary’s only share a number', async () => {
    // two promotions that do not know of each other: both begin timeline 2
    for (const id of [b, c]) {
      await s.must({ kind: 'isolate-standby', instanceId: id })
      await s.must({
        kind: 'promote-instance',
        instanceId: id,
        beyondLsn: null,
        atLeastLsn: null,
        standbyNames: '',
      })
      await f.query(id, 'insert into kept values (0)')
      await s.must({ kind: 'checkpoint-instance', instanceId: id })
      expect((await f.query(id, 'select timeline_id as t from pg_control_checkpoint()'))[0]).toEqual({ t: 2 })
    }
    const [toB, toC] = [await s.admit(b, a, 'delta'), await s.admit(c, b, 'delta-2')]
    await s.must({ kind: 'fence-instance', instanceId: b, reason: 'test' })
    expect(await rejoin(b, toC)).toMatchObject({
      rewound: false,
      refused: expect.stringContaining('it was a primary on timeline 2'),
    })
    // and so a standby that followed the other one
    await s.must({ kind: 'restore-primary', instanceId: b })
    await s.must({ kind: 'fence-instance', instanceId: a, reason: 'test' })
    await s.must({ kind: 'clone-standby', instanceId: a, upstream: toB, replace: true })
    await s.must({ kind: 'follow-upstream', instanceId: a, upstream: toB })
    await s.must({ kind: 'fence-instance', instanceId: a, reason: 'test' })
    expect(await rejoin(a, await s.admit(c, a, 'delta'))).toMatchObject({
      rewound: false,
      refused: expect.stringMatching(/^it has WAL up to .*, the primary on the same timeline only up to /),
    })
    await f.query(c, 'create table later as select generate_series(1, 600000)')
    await s.must({ kind: 'fence-instance', instanceId: a, reason: 'test' })
    expect(await rejoin(a, await s.admit(c, a, 'delta'))).toMatchObject({
      rewound: false,
      refused: expect.stringContaining('two histories'),
    })
  })

  test('what a pg_rewind that was cut short left is copied anew, also when its WAL is the primary’s', async () => {
    const primary = await s.primary('eta')
    const { id, upstream: to } = await s.standby(primary, 'eta-2')
    await s.must({ kind: 'fence-instance', instanceId: id, reason: 'test' })
    writeFileSync(`${directoryOf(id)}/rewinding`, '')
    expect(await rejoin(id, to)).toEqual({
      rewound: false,
      refused: 'an earlier pg_rewind did not end well',
    })
    await s.must({ kind: 'clone-standby', instanceId: id, upstream: to, replace: true })
    await s.must({ kind: 'follow-upstream', instanceId: id, upstream: to })
    await s.must({ kind: 'fence-instance', instanceId: id, reason: 'test' })
    expect(await rejoin(id, to)).toEqual({ rewound: true, refused: null })
  })

  test('whose WAL ends with a segment, or has just begun one, comes back all the same', async () => {
    const primary = await s.primary('theta')
    const { id, upstream: to } = await s.standby(primary, 'theta-2')
    for (const write of ['select pg_switch_wal()', 'select pg_logical_emit_message(true, $$x$$, $$y$$)']) {
      await f.query(primary, write)
      await s.caughtUp(primary, id)
      await s.must({ kind: 'fence-instance', instanceId: id, reason: 'test' })
      expect(await rejoin(id, to)).toEqual({ rewound: true, refused: null })
    }
  })

  test('whose engine does not start from what is there is copied anew, and is fenced until then', async () => {
    const primary = await s.primary('iota')
    const { id, upstream: to } = await s.standby(primary, 'iota-2')
    await s.must({ kind: 'fence-instance', instanceId: id, reason: 'test' })
    // the histories agree; the engine does not get as far as them
    writeFileSync(`${directoryOf(id)}/pgdata/backup_label`, 'broken', { mode: 0o644 })
    expect(await rejoin(id, to)).toEqual({
      rewound: false,
      refused: expect.stringMatching(/^it does not follow with what pg_rewind left: .*backup_label/),
    })
    expect(await f.observed(id)).toMatchObject({ state: 'stopped', fenced: expect.anything() })
    await s.must({ kind: 'clone-standby', instanceId: id, upstream: to, replace: true })
    await s.must({ kind: 'follow-upstream', instanceId: id, upstream: to })
    expect(await f.observed(id)).toMatchObject({ state: 'running', fenced: null })
  })

  test('that cannot follow as it is configured stays fenced, and is not copied', async () => {
    const primary = await s.primary('kappa')
    const { id, upstream: to } = await s.standby(primary, 'kappa-2')
    await s.must({ kind: 'fence-instance', instanceId: id, reason: 'test' })
    appendFileSync(`${directoryOf(id)}/pgdata/postgresql.conf`, 'work_mem = a lot\n')
    expect(await s.run({ kind: 'rewind-instance', instanceId: id, upstream: to })).toMatchObject({
      state: 'failed',
      fault: {
        code: 'instance.not_started',
        detail: expect.stringMatching(/postgresql\.conf" contains errors/),
      },
    })
    expect(await s.run({ kind: 'follow-upstream', instanceId: id, upstream: to })).toMatchObject({
      state: 'failed',
    })
    expect(await f.observed(id)).toMatchObject({ state: 'stopped', fenced: expect.anything() })
  })

  test('of another system is refused', async () => {
    const other = await s.primary('epsilon')
    await s.must({ kind: 'fence-instance', instanceId: a, reason: 'test' })
    expect(await rejoin(a, await s.admit(other, a, 'delta'))).toMatchObject({
      rewound: false,
      refused: expect.stringContaining('system identifier'),
    })
  })
})

describe('a copy of some size', () => {
  afterAll(() => f.stopAll())
  test('counts its bytes while it goes on, and never more than there are', async () => {
    const primary = await s.primary('large')
    // about 90 MB
    await f.query(
      primary,
      `create table large as select repeat(md5(n::text), 40) as filling from generate_series(1, 60000) as n`,
    )
    const standby = randomUUID()
    const upstream = await s.admit(primary, standby, 'large-2')
    const key = await f.begin({
      kind: 'clone-standby',
      instanceId: standby,
      upstream,
      replace: false,
    } as never)
    const told: { doneBytes: number; totalBytes: number | null; progress: number | null }[] = []
    const end = await waitUntil('the copy has ended', async () => {
      const status = await f.read.task.check.query({ key })
      if (status.work) told.push({ ...status.work, progress: status.progress })
      return status.state === 'running' ? null : status
    })
    expect(end).toMatchObject({ state: 'succeeded', work: null })
    // the file system of the tests' directory decides, and the log says so
    const way = end.log.map((line) => line.text).find((text) => /reflink/.test(text))
    if ((end.result as TaskResult<'clone-standby'>).method === 'basebackup')
      expect(way).toMatch(
        /pg_basebackup .*not by reflink: the file system cannot share blocks between files$/,
      )
    else return expect(way).toMatch(/^copying by reflink/)
    expect(told.length).toBeGreaterThan(0)
    for (const { doneBytes, totalBytes, progress } of told) {
      expect(totalBytes).toBeGreaterThan(80 * 1024 ** 2)
      expect(progress).toBeCloseTo(doneBytes / (totalBytes as number))
    }
    const counted = told.map(({ doneBytes }) => doneBytes)
    expect(counted).toEqual([...counted].sort((x, y) => x - y))
  })
})

describe('a copy that cannot be', () => {
  afterAll(() => f.stopAll())
  let primary: string
  beforeAll(async () => {
    primary = await s.primary('gamma')
  })
  const attempt = async (change: Record<string, unknown>) => {
    const id = randomUUID()
    const name = `g-${id.slice(0, 8)}`
    const upstream = { ...(await s.admit(primary, id, name)), ...change }
    const status = await s.run({ kind: 'clone-standby', instanceId: id, upstream, replace: false })
    expect(readdirSync(directoryOf(id)).filter((e) => e.startsWith('pgdata'))).toEqual([])
    await s.must({ kind: 'forget-standby', instanceId: id })
    await s.dismiss(primary, name, false)
    expect(existsSync(directoryOf(id))).toBe(false)
    expect(await f.observed(id)).toBeUndefined()
    return status.fault
  }

  test('of another major version is refused before anything is copied', async () => {
    expect(await attempt({ engineVersion: '17.2' })).toMatchObject({
      code: 'standby.version_differs',
      detail: expect.stringContaining('17.2'),
    })
  })

  test('that does not fit is refused with the bytes it needs', async () => {
    expect(await attempt({ sizeBytes: 1e18 })).toMatchObject({ code: 'standby.disk_too_small' })
  })

  test('whose primary does not answer says so and leaves nothing', async () => {
    const fault = await attempt({ port: 1 })
    expect(fault).toMatchObject({ code: 'standby.not_copied' })
    expect(fault?.detail).toMatch(/refused|could not connect/i)
  })

  test('with the wrong password is refused by the primary', async () => {
    const id = randomUUID()
    const upstream = await s.admit(primary, id, 'wrong')
    const passFile = `${directoryOf(id)}/replication.pgpass`
    const text = readFileSync(passFile, 'utf8').replace(/:[^:\n]+$/gm, ':wrong')
    writeFileSync(passFile, text)
    const { fault } = await s.run({ kind: 'clone-standby', instanceId: id, upstream, replace: false })
    expect(fault?.detail).toContain('password authentication failed')
    await s.must({ kind: 'forget-standby', instanceId: id })
    await s.dismiss(primary, 'wrong', false)
  })
})

describe('no step is lost when the agent is killed', () => {
  let primary: string
  beforeAll(async () => {
    primary = await s.primary('zeta')
    await f.query(
      primary,
      'create table big as select n, md5(n::text) as t from generate_series(1, 200000) n',
    )
  })

  test('between making the directory of the copy and giving it to its user', async () => {
    const id = randomUUID()
    const name = `d-${id.slice(0, 8)}`
    const upstream = await s.admit(primary, id, name)
    mkdirSync(join(directoryOf(id), 'pgdata.unfinished-1-1'), { mode: 0o700 })
    await s.must({ kind: 'clone-standby', instanceId: id, upstream, replace: false })
    expect(readdirSync(directoryOf(id)).filter((e) => e.startsWith('pgdata'))).toEqual(['pgdata'])
    await f.must({ kind: 'delete-instance', instanceId: id, confirmName: name, keepFiles: false })
    await s.dismiss(primary, name, false)
  })

  test.each(long ? [0, 50, 200, 500, 900] : [200])('while it copies, after %i ms', async (ms) => {
    const id = randomUUID()
    const name = `d-${id.slice(0, 8)}`
    const upstream = await s.admit(primary, id, name)
    const key = await f.begin({ kind: 'clone-standby', instanceId: id, upstream, replace: false } as never)
    // the moment of the kill is what is tried out here; nothing waits for an effect of it
    await new Promise((resolve) => setTimeout(resolve, ms))
    await f.agent.end('SIGKILL')
    await f.agent.start()
    expect(await f.ended(key, 60_000)).toMatchObject({ state: 'succeeded', fault: null })
    expect(readdirSync(directoryOf(id)).filter((e) => e.startsWith('pgdata'))).toEqual(['pgdata'])
    await s.must({ kind: 'follow-upstream', instanceId: id, upstream })
    expect(await f.query(id, 'select count(*)::int as n from big')).toEqual([{ n: 200_000 }])
    await f.must({ kind: 'delete-instance', instanceId: id, confirmName: name, keepFiles: false })
    await s.dismiss(primary, name, false)
  })

  test.each(long ? [0, 30, 100, 250] : [100])(
    'while it demotes, fences and promotes, after %i ms',
    async (ms) => {
      const name = `e${ms}`
      const { id: standby } = await s.standby(primary, name)
      const back = await s.admit(primary, primary, 'zeta', false)
      const kill = async (task: { kind: string } & Record<string, unknown>) => {
        const key = await f.begin(task as never)
        await new Promise((resolve) => setTimeout(resolve, ms))
        await f.agent.end('SIGKILL')
        await f.agent.start()
        const status = await f.ended(key, 60_000)
        expect(status).toMatchObject({ state: 'succeeded', fault: null })
        return status.result
      }
      const { shutdownLsn } = (await kill({
        kind: 'demote-instance',
        instanceId: primary,
        upstream: { ...back, port: port(standby) },
      })) as TaskResult<'demote-instance'>
      expect((await s.run({ kind: 'start-instance', instanceId: primary })).fault?.code).toBe(
        'instance.fenced',
      )
      await kill({
        kind: 'promote-instance',
        instanceId: standby,
        beyondLsn: shutdownLsn,
        atLeastLsn: null,
        standbyNames: '',
      })
      await f.query(standby, 'create table written (n int)')
      await kill({ kind: 'fence-instance', instanceId: standby, reason: 'test' })
      expect((await s.run({ kind: 'start-instance', instanceId: standby })).fault?.code).toBe(
        'instance.fenced',
      )
      // back to where it began
      await kill({ kind: 'restore-primary', instanceId: primary })
      await f.query(primary, 'select 1')
      await f.must({ kind: 'delete-instance', instanceId: standby, confirmName: name, keepFiles: false })
      await s.dismiss(primary, name, false)
    },
  )
})
