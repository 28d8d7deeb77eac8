import { afterAll, beforeAll, describe, expect } from 'vitest'
import { freePorts, until } from '../launcher/private-home'
import { noteInstance } from './ledger'
import {
  attempt,
  type Created,
  findSockets,
  gotIn,
  home,
  it,
  must,
  NOBODY,
  residentBytes,
  run,
  sql,
  uidOf,
  watcher,
} from './victim'

// Sessions of one instance share its backends: strangers are at its second port, and its superuser answers what Floe asks of it.

type Asked = {
  sharedServer: { port: number; enabled: boolean; dispatcher: string; pools: unknown[] } | null
}
let sharing: Created
let port: number
const connections = () => home.json<Asked>('instance', 'connections', 'sharing')
const restart = () =>
  must(
    home
      .run(['instance', 'restart', 'sharing'])
      .then(({ status, stdout, stderr }) => ({ status, out: stdout, err: stderr })),
  )
const isOn = () =>
  until(
    'its sessions are shared',
    async () => (await connections()).sharedServer?.dispatcher === 'running',
    30_000,
  )

beforeAll(async () => {
  sharing = await home.json<Created>('instance', 'create', 'sharing')
  noteInstance(it.ledger, sharing.instanceId)
  port = await freePorts(1)
  const set = await home.run([
    ...['setting', 'set', 'sharing', `polar_ss_port=${port}`, 'polar_enable_shared_server=on'],
  ])
  expect(set.status, set.stderr).toBe(0)
  await restart()
  await isOn()
})
afterAll(async () => {
  await home.run(['instance', 'delete', 'sharing', '--confirm', 'sharing'])
})

/** A hand-over of a client as the dispatcher makes it, with a token that is guessed; says what came back, and how it ended. */
const HAND_OVER = `
import os, socket, struct, sys
for place in sys.argv[1:]:
    for resume in (0, 1):
        for token in (b"\\0" * 32, b"\\xff" * 32, os.urandom(32)):
            try:
                if place.startswith("/"):
                    s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(place)
                else:
                    s = socket.create_connection(("127.0.0.1", int(place)), 10)
                s.sendall(struct.pack(">II", 52, 1234 << 16 | 5690) + token + struct.pack("=iii", 0, 0 if resume == 0 else -1, resume))
                said = s.recv(4096)
                print("SAID", place, said.hex() or "nothing", flush=True)
            except OSError as e:
                print("REFUSED", place, type(e).__name__, flush=True)
print("end", flush=True)
`
const loginsCounted = () => must(sql(sharing, 'select logins from public.polar_stat_dispatcher'))

describe('reaches for sessions of others', () => {
  attempt('neighbour of 1', 'who has no token hands no client over, at any door, as any user', async () => {
    const sockets = findSockets(it.socketDirectory).filter((path) => path.endsWith(`.${sharing.port}`))
    expect(sockets).toHaveLength(1)
    const before = await loginsCounted()
    for (const uid of [NOBODY, uidOf(it.alpha), 0]) {
      const { out } = await run(
        '/usr/bin/python3',
        ['-c', HAND_OVER, `${sharing.port}`, `${port}`, ...sockets],
        { uid },
      )
      expect(out).toMatch(/end\n$/)
      const answers = out.split('\n').filter((line) => line.startsWith('SAID'))
      // the doors answer: 'E' is an error of the protocol
      expect(answers.length).toBeGreaterThanOrEqual(6)
      const taken = answers.filter((line) => !/^SAID \S+ (nothing|45[0-9a-f]*)$/.test(line))
      gotIn(taken.length > 0, `as ${uid}: ${taken[0]}`)
    }
    const after = await loginsCounted()
    gotIn(after !== before, `${Number(after) - Number(before)} logins of nobody`)
    // the shared port serves who does log in, and counts it
    const url = new URL(sharing.connectionString)
    url.port = `${port}`
    url.searchParams.set('sslmode', 'disable')
    expect(await must(sql({ connectionString: url.toString() }, 'select 1'))).toBe('1')
    await until('the login is counted', async () => Number(await loginsCounted()) > Number(before), 10_000)
  })

  attempt('neighbour of 7', 'who takes the shared port meanwhile is not shown as the instance', async () => {
    const stopped = await home.run(['instance', 'stop', 'sharing', '--mode', 'fast'])
    expect(stopped.status, stopped.stderr).toBe(0)
    const squatter = await watcher(
      NOBODY,
      `
import socket, sys, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(64)
print("ready")
while True:
    c, a = s.accept(); c.settimeout(5)
    try: print("GOT", c.recv(4096).hex())
    except OSError: pass
`,
      `${port}`,
    )
    try {
      const started = await home.run(['instance', 'start', 'sharing'])
      expect(started.status, started.stderr).toBe(0)
      await until(
        'it is seen without a dispatcher',
        async () => (await connections()).sharedServer?.dispatcher === 'absent',
        30_000,
      )
      const { stdout } = await home.run(['instance', 'connections', 'sharing'])
      gotIn(/^connect /m.test(stdout), `clients are sent there: ${stdout}`)
      expect(stdout).toMatch(/^state +Dispatcher down/m)
      // the port of its own is there all the same
      expect(await must(sql(sharing, 'select 1'))).toBe('1')
    } finally {
      // Floe itself said nothing there
      gotIn(/^GOT [0-9a-f]+$/m.test(await squatter.end()), 'something of Floe connected to it')
    }
    await isOn()
  })
})

describe('answers for its sessions what it likes', () => {
  const views = ['polar_stat_dispatcher', 'polar_stat_session', 'polar_stat_worker_pool'] as const
  /** Rows of a view that hold nothing but what is made up. */
  const rows = (count: number, view: (typeof views)[number]) =>
    `(select v.* from generate_series(1, ${count}) g left join true_${view} v on g < 0)`
  const pool = {
    sessions: '1',
    workers: '1',
    free: '0',
    waiting: '0',
    dedicated: '0',
    transactions: '0',
    binds: '0',
  }
  /** The view as it is, with some columns of its own making, of any type. */
  const lie = async (view: (typeof views)[number], columns: Record<string, string>, from = '') => {
    const names = await must(
      sql(
        sharing,
        `select string_agg(attname, ',' order by attnum) from pg_attribute
          where attrelid = 'true_${view}'::regclass and attnum > 0`,
      ),
    )
    const list = names.split(',').map((name) => `${columns[name] ?? `t.${name}`} as ${name}`)
    await must(
      sql(
        sharing,
        `drop view if exists ${view};
         create view ${view} as select ${list.join(', ')} from ${from || `true_${view}`} t`,
      ),
    )
  }
  beforeAll(async () => {
    for (const view of views)
      await must(
        sql(
          sharing,
          `alter extension shared_server drop view ${view}; alter view ${view} rename to true_${view}`,
        ),
      )
    for (const view of views) await lie(view, {})
  })

  attempt('neighbour of 15', 'no process of another is taken for its dispatcher', async () => {
    const agent = await home.pidOf('agent')
    for (const pid of [agent, 1, process.pid, -1, 2_000_000_000]) {
      await lie('polar_stat_dispatcher', { pid: `${pid}` })
      const { sharedServer } = await connections()
      gotIn(sharedServer?.dispatcher === 'running', `process ${pid} is said to be its dispatcher`)
    }
    // with its own it is
    await lie('polar_stat_dispatcher', {})
    expect((await connections()).sharedServer?.dispatcher).toBe('running')
  })

  attempt('neighbour of 15', 'answers without end cost the agent no memory, and nobody else', async () => {
    const agent = await home.pidOf('agent')
    const before = residentBytes(agent)
    const long = `repeat('x', 250000000)`
    for (const [view, columns, from] of [
      ['polar_stat_worker_pool', { ...pool, datname: long, usename: long }, 100],
      ['polar_stat_session', { pinned_by: long, mode: `'dedicated'` }, 100],
      ['polar_stat_dispatcher', { timeouts: long }, 0],
    ] as const) {
      await lie(view, columns, from ? rows(from, view) : '')
      const asked = await home.run(['instance', 'connections', 'sharing'])
      gotIn(asked.stdout.includes('xxxxxxxxxx'.repeat(100)), `${view} is told at length`)
      const grown = residentBytes(agent) - before
      gotIn(grown > 400 * 1024 * 1024, `${view} takes ${grown} bytes of the agent`)
      await lie(view, {})
    }
    expect(await home.pidOf('agent')).toBe(agent)
    expect((await home.run(['instance', 'show', 'beta', '--json'])).stdout).toContain('"state": "running"')
    await until('it answers again', async () => (await connections()).sharedServer !== null, 30_000)
  })

  attempt('neighbour of 8', 'no name or reason moves the cursor of a terminal', async () => {
    await lie(
      'polar_stat_worker_pool',
      { ...pool, datname: `e'\\x1b[2Jhidden'`, usename: `e'\\x1b]0;x\\x07'` },
      rows(1, 'polar_stat_worker_pool'),
    )
    await lie(
      'polar_stat_session',
      { pinned_by: `e'\\x1b[2Jpinned'`, mode: `'dedicated'` },
      rows(1, 'polar_stat_session'),
    )
    const { stdout, stderr } = await home.run(['instance', 'connections', 'sharing'])
    gotIn(`${stdout}${stderr}`.includes('\u001b'), JSON.stringify(stdout))
    // they are told, though
    expect(stdout).toContain('u{1b}[2Jhidden')
    expect(stdout).toContain('u{1b}[2Jpinned')
    for (const view of views) await lie(view, {})
  })
})
