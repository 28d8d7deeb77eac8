import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPostmaster } from '../src/process/postmaster'
import { checkout, freePorts, PrivateHome, until } from './private-home'

/** The last version in which all engines of a host were one user. */
const BEFORE = 'a4a8419'

/**
 * The version before gets the engine of now with one line more, so that an update changes what instances run while nobody
 * compiles PostgreSQL a third time for it, and modules of then need not fit the core of now; --long takes the engine as it was.
 */
function takeEngineOfNow(tree: string): void {
  if (process.env.FLOE_TEST_LONG) return
  rmSync(join(tree, 'engine'), { recursive: true })
  git(tree, 'checkout', git(checkout, 'rev-parse', 'HEAD'), '--', 'engine')
  appendFileSync(join(tree, 'engine/modules/monitor/stat_wal.c'), '\n/* another build */\n')
}

const git = (directory: string, ...args: string[]) =>
  execFileSync('git', ['-C', directory, ...args], { encoding: 'utf8' }).trim()

/** Whether this clone has that version, which a shallow one does not. */
const known = (() => {
  try {
    git(checkout, 'cat-file', '-e', `${BEFORE}^{commit}`)
    return true
  } catch {
    return false
  }
})()

type Created = { instanceId: string; port: number; connectionString: string; directory: string }
type Member = {
  name: string
  role: string
  state: string
  replication: { standbys: { applicationName: string; state: string }[] } | null
}
type Shown = { state: string; postmasterPid: number | null; port: number; directory: string }
type Protection = { imagesInForce: boolean; sources: { member: string; healthy: boolean }[] }
type Recovery = { torn: number; repaired: number; sources: { member: string; pages: number }[] }

const PAGE = 8_192

describe.runIf(process.getuid?.() === 0 && known)('an installation of the version before', () => {
  const home = new PrivateHome()
  const tree = mkdtempSync(join(tmpdir(), 'floe-update-'))
  const file = join(tree, 'floe')
  const made = new Map<string, Created>()
  let prefix = ''

  const floe = async <T>(...args: string[]): Promise<T> => {
    const { status, stdout, stderr } = await home.run([...args, '--json'], { file })
    if (status !== 0) throw new Error(`floe ${args.join(' ')} ended with ${status}\n${stdout}\n${stderr}`)
    return JSON.parse(stdout) as T
  }
  const sqlAt = (url: string, statement: string) =>
    execFileSync(join(prefix, 'bin/psql'), ['-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', statement, url], {
      encoding: 'utf8',
    }).trim()
  const sql = (name: string, statement: string) => sqlAt(made.get(name)?.connectionString ?? '', statement)
  const foreseeableRoles = () =>
    sql(
      'shop',
      `select rolname from pg_roles where rolname ~ '^floe_(standby|repair)_' and rolname !~ '_[0-9a-f]{16}$'`,
    ).split('\n')
  const ownerOf = (name: string) => statSync(join(made.get(name)?.directory ?? '', 'pgdata')).uid

  beforeAll(async () => {
    git(checkout, 'worktree', 'add', '--detach', tree, BEFORE)
    takeEngineOfNow(tree)
    const base = await freePorts(24)
    const { enginePrefix } = await floe<{ enginePrefix: string }>(
      ...['up', '--port', String(base), '--instance-ports', `${base + 3}-${base + 23}`],
    )
    prefix = enginePrefix
    for (const name of ['shop', 'crm', 'logs', 'wiki'])
      made.set(name, await floe<Created>('instance', 'create', name))
    await floe('standby', 'create', 'shop', 'shop-2')
    await floe('setting', 'set', 'crm', 'work_mem=8MB', '--reason', 'reports')
    for (const name of ['shop', 'crm', 'logs', 'wiki'])
      sql(name, 'create table kept as select generate_series(1, 1000) i')
    await floe('instance', 'stop', 'wiki')
    expect(new Set(['shop', 'crm', 'logs'].map(ownerOf)).size).toBe(1)
    expect(foreseeableRoles()).toContain('floe_standby_shop_2')

    // as `git pull` does, with what is not committed yet
    git(
      tree,
      'checkout',
      '--force',
      '--detach',
      git(checkout, 'stash', 'create') || git(checkout, 'rev-parse', 'HEAD'),
    )
    await floe('up')
  }, 900_000)
  afterAll(async () => {
    await home.run(['down', '--instances'], { file })
    await home.remove()
    git(checkout, 'worktree', 'remove', '--force', tree)
    rmSync(tree, { recursive: true, force: true })
  }, 120_000)

  test('each instance has a user of its own, and neither engines, web nor controller run as root', async () => {
    const instances = await floe<{ name: string; state: string }[]>('instance', 'list')
    expect(instances.map((i) => `${i.name} ${i.state}`).sort()).toEqual([
      'crm running',
      'logs running',
      'shop running',
      'shop-2 running',
      'wiki stopped',
    ])
    const uids = ['shop', 'crm', 'logs', 'wiki'].map(ownerOf)
    expect(new Set(uids).size).toBe(4)
    const rows = execFileSync('ps', ['-eo', 'uid=,args='], { encoding: 'utf8' })
      .split('\n')
      .filter((row) => row.includes(home.directory) || /next-server|floe control database/.test(row))
    const roots = rows.filter(
      (row) => /^\s*0 /.test(row) && /bin\/postgres |next-server|controller/.test(row),
    )
    expect(roots).toEqual([])
  })

  test('members of clusters log in as roles that nobody foresees, and the former ones are gone', () => {
    expect(foreseeableRoles()).toEqual([''])
    expect(sql('shop', `select application_name, usename ~ '_[0-9a-f]{16}$' from pg_stat_replication`)).toBe(
      'shop-2|t',
    )
  })

  test('data, history and the connection strings of clients hold', async () => {
    for (const name of ['shop', 'crm', 'logs']) expect(sql(name, 'select count(*) from kept')).toBe('1000')
    expect(sql('crm', 'show work_mem')).toBe('8MB')
    const history = await floe<{ name: string; reason: string | null }[]>('setting', 'history', 'crm')
    expect(history).toMatchObject([{ name: 'work_mem', reason: 'reports' }])
    // one that was stopped all the while, and a standby
    await floe('instance', 'start', 'wiki')
    expect(sql('wiki', 'select count(*), sum(i) from kept')).toBe('1000|500500')
    expect(sqlAt(await urlOf('shop-2'), 'select pg_is_in_recovery(), count(*), sum(i) from kept')).toBe(
      't|1000|500500',
    )
    // through the former place of the socket, too
    const { socketDirectory } = JSON.parse(readFileSync(join(home.directory, 'config.json'), 'utf8'))
    const url = new URL(made.get('crm')?.connectionString ?? '')
    const bySocket = `postgresql://${url.username}:${url.password}@/postgres?host=${socketDirectory}&port=${made.get('crm')?.port}`
    expect(
      execFileSync(join(prefix, 'bin/psql'), ['-XAtq', '-c', 'select 1', bySocket], {
        encoding: 'utf8',
      }).trim(),
    ).toBe('1')
    expect(await floe<{ broken: unknown }>('audit', 'verify')).toMatchObject({ broken: null })
  })

  const members = async () =>
    (await floe<{ cluster: { members: Member[] } }>('cluster', 'show', 'shop')).cluster.members
  const shown = (name: string) => floe<Shown>('instance', 'show', name)
  /** A member of the cluster "shop" by itself; the password is one for all. */
  const urlOf = async (name: string) => {
    const url = new URL(made.get('shop')?.connectionString ?? '')
    url.port = `${(await shown(name)).port}`
    return url.toString()
  }

  /**
   * Loses the power of a primary that writes no images, with every page of `kept` half written: the sectors of each are in
   * turn those before the last update and those after it. Answers how many pages that are.
   */
  async function tear(name: string, source: string): Promise<number> {
    const protection = () => floe<Protection>('instance', 'protection', name)
    await until(`"${name}" has found "${source}" healthy`, async () =>
      (await protection()).sources.some((s) => s.member === source && s.healthy),
    )
    await floe('setting', 'set', name, 'full_page_writes=off')
    await until(`"${name}" writes no images`, async () => !(await protection()).imagesInForce)
    const { directory, postmasterPid } = await shown(name)
    const url = await urlOf(name)
    const data = join(directory, 'pgdata')
    const file = join(data, sqlAt(url, `select pg_relation_filepath('kept')`))
    sqlAt(url, 'checkpoint')
    const before = readFileSync(file)
    sqlAt(url, 'update kept set i = i')
    sqlAt(url, `select pg_buffercache_evict_relation('kept')`)
    await until(
      `"${source}" has what "${name}" wrote`,
      () =>
        sqlAt(url, 'select bool_and(replay_lsn >= pg_current_wal_flush_lsn()) from pg_stat_replication') ===
        't',
    )
    // nobody starts the instance while its files are what the disk made of them
    const agent = await home.pidOf('agent')
    process.kill(agent, 'SIGSTOP')
    try {
      process.kill(postmasterPid as number, 'SIGKILL')
      await until('none of its processes is left', () => findPostmaster(data) === null)
      const after = readFileSync(file)
      const fd = openSync(file, 'r+')
      let torn = 0
      for (let at = 0; at < before.length; at += PAGE) {
        const mixed = Buffer.from(after.subarray(at, at + PAGE))
        for (let sector = 512; sector < PAGE; sector += 1_024)
          before.copy(mixed, sector, at + sector, at + sector + 512)
        if ([before, after].some((whole) => mixed.equals(whole.subarray(at, at + PAGE)))) continue
        writeSync(fd, mixed, 0, PAGE, at)
        torn++
      }
      closeSync(fd)
      return torn
    } finally {
      process.kill(agent, 'SIGCONT')
    }
  }

  /** Tears pages of a primary, and expects it back by itself with each of them from its standby. */
  async function expectRepair(name: string, source: string): Promise<void> {
    const { postmasterPid } = await shown(name)
    const torn = await tear(name, source)
    expect(torn).toBeGreaterThan(0)
    await until(`"${name}" is back`, async () => {
      const { state, postmasterPid: pid } = await shown(name)
      return state === 'running' && pid !== postmasterPid
    })
    const recoveries = () => floe<Recovery[]>('instance', 'recoveries', name)
    await until(`the recovery of "${name}" is told`, async () => (await recoveries()).length > 0)
    const [recovery] = await recoveries()
    // a page that was new since the checkpoint is made anew by WAL, and asked of nobody
    const repaired = recovery?.repaired ?? 0
    expect(repaired).toBeGreaterThan(0)
    expect(repaired).toBeLessThanOrEqual(torn)
    expect(recovery).toMatchObject({ torn: repaired, sources: [{ member: source, pages: repaired }] })
    expect(sqlAt(await urlOf(name), 'select count(*), sum(i) from kept')).toBe('1000|500500')
    // as the console sees it: what is ordered next is judged by that
    await until(
      `"${source}" follows again`,
      async () =>
        (await members())
          .find((m) => m.name === name)
          ?.replication?.standbys.some((s) => s.applicationName === source && s.state === 'streaming') ===
        true,
    )
  }

  test('a page that is torn afterwards is taken from the standby, as the new users', async () => {
    sql('shop', 'create extension pg_buffercache')
    await expectRepair('shop', 'shop-2')
  })

  test('switchover, page repair and failover work afterwards', async () => {
    const primary = async () => (await members()).find((m) => m.role === 'primary')?.name
    await floe('cluster', 'switchover', 'shop', '--to', 'shop-2')
    expect(await primary()).toBe('shop-2')
    await floe('cluster', 'page-repair', 'shop', '--all')
    await expectRepair('shop-2', 'shop')
    await floe('cluster', 'failover', 'shop', '--to', 'shop', '--accept-loss', '16777216')
    expect(await primary()).toBe('shop')
    expect(sql('shop', 'select count(*) from kept')).toBe('1000')
  })
})
