import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkout, freePorts, PrivateHome } from './private-home'

/** The last version in which all engines of a host were one user. */
const BEFORE = 'a4a8419'

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
type Member = { name: string; role: string; state: string }

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
  const sql = (name: string, statement: string) =>
    execFileSync(
      join(prefix, 'bin/psql'),
      ['-XAtq', '-c', statement, made.get(name)?.connectionString ?? ''],
      {
        encoding: 'utf8',
      },
    ).trim()
  const foreseeableRoles = () =>
    sql(
      'shop',
      `select rolname from pg_roles where rolname ~ '^floe_(standby|repair)_' and rolname !~ '_[0-9a-f]{16}$'`,
    ).split('\n')
  const ownerOf = (name: string) => statSync(join(made.get(name)?.directory ?? '', 'pgdata')).uid

  beforeAll(async () => {
    git(checkout, 'worktree', 'add', '--detach', tree, BEFORE)
    const base = await freePorts(24)
    const { enginePrefix } = await floe<{ enginePrefix: string }>(
      ...['up', '--port', String(base), '--instance-ports', `${base + 3}-${base + 23}`],
    )
    prefix = enginePrefix
    for (const name of ['shop', 'crm', 'logs', 'wiki'])
      made.set(name, await floe<Created>('instance', 'create', name))
    await floe('standby', 'create', 'shop', 'shop-2')
    await floe('setting', 'set', 'crm', 'work_mem=8MB', '--reason', 'reports')
    for (const name of ['shop', 'crm', 'logs'])
      sql(name, 'create table kept as select generate_series(1, 1000) i')
    await floe('instance', 'stop', 'wiki')
    expect(new Set(['shop', 'crm', 'logs'].map(ownerOf)).size).toBe(1)
    expect(foreseeableRoles()).toContain('floe_standby_shop_2')

    // as `git pull` does, with what is not committed yet
    git(tree, 'checkout', '--detach', git(checkout, 'stash', 'create') || git(checkout, 'rev-parse', 'HEAD'))
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

  test('switchover, page repair and failover work afterwards', async () => {
    const members = async () =>
      (await floe<{ cluster: { members: Member[] } }>('cluster', 'show', 'shop')).cluster.members
    const primary = async () => (await members()).find((m) => m.role === 'primary')?.name
    await floe('cluster', 'switchover', 'shop', '--to', 'shop-2')
    expect(await primary()).toBe('shop-2')
    await floe('cluster', 'page-repair', 'shop', '--all')
    await floe('cluster', 'failover', 'shop', '--to', 'shop', '--accept-loss', '16777216')
    expect(await primary()).toBe('shop')
    expect(sql('shop', 'select count(*) from kept')).toBe('1000')
  })
})
