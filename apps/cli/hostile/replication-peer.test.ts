import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { until } from '../launcher/private-home'
import { noteInstance } from './ledger'
import {
  attempt,
  type Created,
  gotIn,
  home,
  it,
  must,
  revive,
  run,
  shellAs,
  sql,
  uidOf,
  watcher,
} from './victim'

// Whoever reaches an instance's port and speaks PostgreSQL's protocol there, and a member of a cluster that turned hostile.

let standby: { instanceId: string; directory: string; port: number }
let primary: Created

beforeAll(async () => {
  primary = await home.json<Created>('instance', 'create', 'delta')
  noteInstance(it.ledger, primary.instanceId)
  await home.json('standby', 'create', 'delta', 'delta-2')
  const shown = await home.json<{ instanceId: string; port: number }>('instance', 'show', 'delta-2')
  noteInstance(it.ledger, shown.instanceId)
  standby = { ...shown, directory: join(it.instancesDirectory, shown.instanceId) }
})
afterAll(async () => {
  await home.run(['standby', 'remove', 'delta-2', '--confirm', 'delta-2'])
  await home.run(['instance', 'delete', 'delta', '--confirm', 'delta'])
})

const int32 = (n: number) => {
  const b = Buffer.alloc(4)
  b.writeInt32BE(n | 0)
  return b
}
const startup = (parameters: Record<string, string>, version = 196608) => {
  const text = Object.entries(parameters)
    .map(([name, value]) => `${name}\0${value}\0`)
    .join('')
  const body = Buffer.concat([int32(version), Buffer.from(`${text}\0`)])
  return Buffer.concat([int32(body.length + 4), body])
}

/** Sends bytes to an instance and collects what it answers until it is done with us. */
function speak(port: number, pieces: Buffer[]): Promise<Buffer> {
  return new Promise((resolve) => {
    const got: Buffer[] = []
    const socket = connect(port, '127.0.0.1')
    const end = () => {
      socket.destroy()
      resolve(Buffer.concat(got))
    }
    socket.setTimeout(1_500, end)
    socket.on('data', (data) => {
      got.push(data)
      const next = pieces.shift()
      if (next) socket.write(next)
    })
    socket.on('error', end)
    socket.on('close', end)
    socket.on('connect', () => socket.write(pieces.shift() as Buffer))
  })
}
/** AuthenticationOk, the only answer that lets somebody in. */
const isIn = (answer: Buffer) => answer.includes(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]))

describe('speaks to an instance', () => {
  attempt('2, 8', 'nobody replicates without the password of a member', async () => {
    const roles = [
      'floe',
      'postgres',
      'floe_standby_delta_2',
      'floe_repair_delta_2',
      'page_repair',
      'dba',
      '',
    ]
    for (const user of roles)
      for (const replication of ['true', 'database', 'false'])
        for (const port of [primary.port, standby.port]) {
          const answer = await speak(port, [
            startup({ user, database: 'postgres', replication }),
            Buffer.concat([Buffer.from('p'), int32(4 + 1), Buffer.from('\0')]),
          ])
          gotIn(isIn(answer), `${user || 'an empty name'} with replication=${replication}`)
        }
  })

  attempt('neighbour of 25', 'no malformed message ends a server', async () => {
    const pids = [primary, standby].map(
      ({ directory }) => readFileSync(join(directory, 'pgdata/postmaster.pid'), 'utf8').split('\n')[0],
    )
    const messages: Buffer[][] = [
      [int32(0)],
      [int32(-1), Buffer.alloc(64, 0xff)],
      [Buffer.concat([int32(0x7fffffff), int32(196608)])],
      [Buffer.concat([int32(8), int32(80877103)]), Buffer.alloc(300, 0x16)],
      [Buffer.concat([int32(8), int32(80877104)]), Buffer.alloc(300, 0x16)],
      [Buffer.concat([int32(16), int32(80877102), int32(1), int32(0)])],
      [Buffer.concat([int32(12), int32(80877102), int32(0x7fffffff)])],
      [startup({ user: 'x'.repeat(9_000), database: 'y'.repeat(900) })],
      [startup({ user: 'postgres', options: '-c session_preload_libraries=/tmp/x.so -c '.repeat(50) })],
      [
        startup({ user: 'postgres', database: "a'b\\c\n" }),
        Buffer.concat([Buffer.from('p'), int32(0x7ffffff0)]),
      ],
      [
        startup({ user: 'postgres' }),
        Buffer.concat([Buffer.from('p'), int32(30), Buffer.from('SCRAM-SHA-256-PLUS\0'), int32(-1)]),
      ],
      [startup({ user: 'postgres' }, 196609)],
      [startup({ user: 'postgres', _pq_x: 'y' }, (3 << 16) | 9999)],
      [Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ]
    for (let round = 0; round < 3; round++)
      for (const { port } of [primary, standby])
        await Promise.all(
          messages.map(async (pieces) => {
            const answer = await speak(port, [...pieces])
            gotIn(isIn(answer), 'a malformed message was let in')
          }),
        )
    expect(
      [primary, standby].map(
        ({ directory }) => readFileSync(join(directory, 'pgdata/postmaster.pid'), 'utf8').split('\n')[0],
      ),
    ).toEqual(pids)
    expect((await sql(primary, 'select 1')).status).toBe(0)
  })

  attempt('26', 'a client elsewhere gets no session without encryption', async () => {
    const rules = await must(
      sql(
        primary,
        `select string_agg(format('%s %s %s', type, address, auth_method), '; ') from pg_hba_file_rules
          where type in ('host', 'hostnossl') and auth_method <> 'reject'
            and coalesce(address, '') not in ('127.0.0.1', '::1', 'localhost')`,
      ),
    )
    gotIn(rules !== '', `pg_hba.conf lets in without TLS: ${rules}`)
  })
})

describe('is asked by a member', () => {
  attempt(
    '6, 8',
    'a hostile primary does not learn the password that a standby replicates with',
    async () => {
      const secrets = ['replication.pgpass', 'page-repair.pgpass']
        .map((name) => join(standby.directory, name))
        .filter(existsSync)
        .map((file) => readFileSync(file, 'utf8').trim().split(':').at(-1) as string)
      expect(secrets.length).toBeGreaterThan(0)
      const uid = uidOf(primary)
      const data = join(primary.directory, 'pgdata')
      const fake = await watcher(
        uid,
        `
import os, signal, socket, ssl, struct, sys, threading, time
port, data = int(sys.argv[1]), sys.argv[2]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain(data + "/floe_server.pem")
def serve(c):
    try:
        c.settimeout(5)
        d = c.recv(8192)
        if d[4:8] == struct.pack(">I", 80877103):
            c.sendall(b"S"); c = context.wrap_socket(c, server_side=True); d = c.recv(8192)
        print("ASKED", d.hex(), flush=True)
        c.sendall(b"R" + struct.pack(">II", 8, 3))
        while True:
            d = c.recv(8192)
            if not d: return
            print("GOT", d.hex(), flush=True)
    except OSError as e: print("ERR", e, flush=True)
print("ready", flush=True)
pid = int(open(data + "/postmaster.pid").readline())
os.kill(pid, signal.SIGQUIT)
while True:
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try: s.bind(("127.0.0.1", port)); s.listen(64); break
    except OSError: s.close(); time.sleep(0.002)
print("BOUND", flush=True)
while True:
    c, _ = s.accept(); threading.Thread(target=serve, args=(c,), daemon=True).start()`,
        `${primary.port}`,
        data,
      )
      try {
        await until('the standby asks the fake primary', () => /^ASKED /m.test(fake.said()), 40_000)
        await until(
          'it has seen the answer',
          () => (fake.said().match(/^ASKED /gm) ?? []).length > 1,
          15_000,
        ).catch(() => undefined)
      } finally {
        const said = await fake.end()
        const got = [...said.matchAll(/^(?:GOT|ASKED) ([0-9a-f]+)$/gm)]
          .map((m) => Buffer.from(m[1] as string, 'hex').toString('latin1'))
          .join('')
        await revive('delta')
        gotIn(
          secrets.some((secret) => got.includes(secret)),
          'it received the password in clear',
        )
      }
    },
  )

  attempt(
    'neighbour of 1',
    'a standby’s own superuser reads neither the primary’s files nor its key',
    async () => {
      const shared = uidOf(primary) === uidOf({ ...primary, directory: standby.directory })
      const { out } = await shellAs(
        uidOf({ ...primary, directory: standby.directory }),
        `head -c 20 '${join(primary.directory, 'pgdata/floe_server.pem')}' 2>/dev/null`,
      )
      gotIn(out.length > 0, `${shared ? 'they are one user: ' : ''}${out}`)
      expect((await run('true', [])).status).toBe(0)
    },
  )
})
