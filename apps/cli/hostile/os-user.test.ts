import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { until } from '../launcher/private-home'
import {
  attempt,
  call,
  deliberately,
  filesBelow,
  findSockets,
  gotIn,
  home,
  it,
  NOBODY,
  openDirectory,
  run,
  shellAs,
  watcher,
} from './victim'

// Somebody with an account on the console's machine, and with no right in Floe.

const psql = join(it.enginePrefix, 'bin/psql')
const q = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Waits for a port, then writes down whatever is sent there; to a PostgreSQL client it says that it wants a clear password. */
const impostor = `
import socket, struct, sys, threading, time
held = {}
def answer(port, c):
    c.settimeout(5)
    try:
        for _ in range(20):
            d = c.recv(4096)
            if not d: return
            print("GOT", port, d.hex(), flush=True)
            if len(d) >= 8 and d[4:8] == struct.pack(">I", 80877103): c.sendall(b"N"); continue
            if len(d) >= 8 and d[4:6] == b"\\x00\\x03": c.sendall(b"R" + struct.pack(">II", 8, 3)); continue
            if d[:4] in (b"GET ", b"POST"): c.sendall(b"HTTP/1.1 401 x\\r\\ncontent-length: 2\\r\\n\\r\\n{}")
    except OSError: pass
def serve(port):
    while True:
        s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try: s.bind(("127.0.0.1", port)); s.listen(64); break
        except OSError: s.close(); time.sleep(0.002)
    print("BOUND", port, flush=True)
    while True:
        c, _ = s.accept(); threading.Thread(target=answer, args=(port, c), daemon=True).start()
for p in sys.argv[1:]: threading.Thread(target=serve, args=(int(p),), daemon=True).start()
print("ready", flush=True)
time.sleep(600)`

const received = (said: string) =>
  Buffer.concat(
    [...said.matchAll(/^GOT \d+ ([0-9a-f]+)$/gm)].map((m) => Buffer.from(m[1] as string, 'hex')),
  ).toString('latin1')

describe('reads and connects', () => {
  attempt('1, 11', 'a stranger on the machine reads no secret, key, state or data', async () => {
    const files = [
      ...filesBelow(join(it.homeDirectory, 'secrets')),
      ...filesBelow(join(it.homeDirectory, 'agent')).slice(0, 500),
      ...filesBelow(join(it.consoleDirectory, 'web')),
      ...filesBelow(join(it.consoleDirectory, 'controller')),
      ...filesBelow(it.instancesDirectory).slice(0, 3_000),
    ]
    const evidence = openDirectory()
    try {
      writeFileSync(join(evidence.path, 'list'), `${files.join('\n')}\n`, { mode: 0o644 })
      const { out } = await shellAs(
        NOBODY,
        `while read -r f; do [ -w "$f" ] && echo "WRITE $f"; [ -r "$f" ] && echo "READ $f"; done < ${evidence.path}/list; echo end`,
      )
      expect(out).toMatch(/end\n$/)
      const open = out
        .split('\n')
        .filter((l) => /^(WRITE|READ) /.test(l) && !/^READ .*(\/ca\.pem|\/config\.json)$/.test(l))
      gotIn(open.length > 0, `${open.length} files, such as ${open.slice(0, 3).join(', ')}`)
    } finally {
      evidence.remove()
    }
  })

  attempt(
    '1, 23',
    'no OS user is let into the control database by a name that it happens to have',
    async () => {
      const directories = [...new Set(findSockets(it.socketDirectory).map((path) => join(path, '..')))]
      const roles = ['floe', 'console', 'floe_web', 'floe_controller', 'postgres']
      const ask = (uid: number, user: string) =>
        shellAs(
          uid,
          `for h in ${directories.map(q).join(' ')} 127.0.0.1; do timeout 5 ${psql} -XAtw -h "$h" -p ${it.controlPort} -U ${user} -d ${it.controlName} -c "select 'IN as '||current_user"; done`,
        )
      for (const role of roles) {
        const { out } = await ask(NOBODY, role)
        gotIn(/^IN as/m.test(out), out)
      }
      // somebody on this machine is called as a role is
      const names = readFileSync('/etc/passwd', 'utf8')
      for (const name of ['console', 'floe_web']) {
        if (names.includes(`\n${name}:`)) continue
        const { status } = await run('useradd', ['--system', '--no-create-home', '--no-user-group', name])
        expect(status).toBe(0)
        try {
          const uid = Number((await run('id', ['-u', name])).out)
          const { out } = await ask(uid, name)
          gotIn(/^IN as/m.test(out), `OS user ${name}: ${out}`)
        } finally {
          await run('userdel', [name])
        }
      }
    },
  )

  attempt('1', 'a stranger can neither remove a socket nor make one where Floe looks for them', async () => {
    const directories = [
      it.socketDirectory,
      ...new Set(findSockets(it.socketDirectory).map((p) => join(p, '..'))),
    ]
    const { out } = await shellAs(
      NOBODY,
      directories.map((d) => `touch ${q(d)}/planted 2>/dev/null && echo ${q(d)}`).join('; '),
    )
    gotIn(out.trim() !== '', out)
  })

  attempt('7', 'the console’s own socket answers nobody without a token', async () => {
    for (const socket of findSockets(it.socketDirectory).filter((path) => path.endsWith('.sock'))) {
      const { out } = await shellAs(
        NOBODY,
        `curl -s --max-time 5 --unix-socket ${q(socket)} http://localhost/api/trpc/instance.list`,
      )
      gotIn(/"result"/.test(out), out.slice(0, 200))
    }
  })

  attempt(
    '11, ps',
    'neither an engine nor web nor controller runs as root; two instances have two users',
    async () => {
      const { processes } = await home.status()
      const uid = (pid: number) => statSync(`/proc/${pid}`).uid
      const of = (name: string) => uid(processes.find((p) => p.name === name)?.pid as number)
      const postmaster = (directory: string) =>
        uid(Number(readFileSync(join(directory, 'pgdata/postmaster.pid'), 'utf8').split('\n')[0]))
      const users = {
        web: of('web'),
        controller: of('controller'),
        control: of('control-database'),
        alpha: postmaster(it.alpha.directory),
        beta: postmaster(it.beta.directory),
      }
      for (const [name, who] of Object.entries(users)) gotIn(who === 0, `${name} runs as root`)
      gotIn(new Set(Object.values(users)).size !== 5, `they share users: ${JSON.stringify(users)}`)
      for (const name of ['web', 'controller', 'control-database']) {
        const pid = processes.find((p) => p.name === name)?.pid as number
        const status = readFileSync(`/proc/${pid}/status`, 'utf8')
        gotIn(!/^CapEff:\s+0+$/m.test(status), `${name} has capabilities`)
      }
      const instance = readFileSync(join(it.alpha.directory, 'pgdata/postmaster.pid'), 'utf8').split('\n')[0]
      gotIn(
        !/^NoNewPrivs:\s+1$/m.test(readFileSync(`/proc/${instance}/status`, 'utf8')),
        'an engine may gain privileges',
      )
    },
  )
})

describe('takes the ports of what is down', () => {
  attempt('6', 'whoever binds the control database’s port receives no password', async () => {
    const pid = await home.pidOf('control-database')
    const fake = await watcher(NOBODY, impostor, `${it.controlPort}`)
    try {
      await deliberately(['control-database'], async () => process.kill(pid, 'SIGKILL'))
      await until('Floe runs again', async () => (await home.status()).state === 'running', 60_000).catch(
        () => undefined,
      )
      await call({ token: it.people.owner.token }, 'query', 'instance.list')
    } finally {
      const got = received(await fake.end())
      await until('Floe runs again', async () => (await home.status()).state === 'running', 60_000)
      const secrets = passwords()
      gotIn(
        secrets.some((secret) => got.includes(secret)) || got.includes('p\0\0\0'),
        `a fake server received ${JSON.stringify(got.slice(0, 120))}`,
      )
      expect(fake.said()).toContain('BOUND')
    }
  })

  attempt(
    '7, 6',
    'whoever binds the ports of a stopped console receives no token and no password',
    async () => {
      await deliberately(['supervisor', 'web', 'controller', 'agent', 'control-database'], () =>
        home.run(['down']),
      )
      const fake = await watcher(NOBODY, impostor, `${it.webPort}`, `${it.agentPort}`, `${it.controlPort}`)
      let said = ''
      try {
        await until('the ports are taken', () => (fake.said().match(/BOUND/g) ?? []).length === 3)
        for (const args of [
          ['status'],
          ['instance', 'list'],
          ['host', 'list'],
          ['instance', 'show', 'beta'],
          ['audit', 'verify'],
        ])
          await home.run([...args, '--json'])
      } finally {
        said = await fake.end()
        await home.json('up')
      }
      const got = received(said)
      const token = readFileSync(join(it.homeDirectory, 'secrets/cli-token'), 'utf8').trim()
      gotIn(got.includes(token), 'a fake console received the token of the command line')
      gotIn(/authorization/i.test(got), 'a fake console received a token')
      gotIn(
        passwords().some((secret) => got.includes(secret)),
        'a fake server received a password',
      )
    },
  )
})

const passwords = () =>
  ['secrets/control-password', 'secrets/control-owner-password']
    .map((file) => join(it.homeDirectory, file))
    .filter(existsSync)
    .map((file) => readFileSync(file, 'utf8').trim())

describe('looks at processes and slow doors', () => {
  attempt(
    '1',
    'no secret stands in the arguments or the environment of a process that others may read',
    async () => {
      const secrets = readdirSync(join(it.homeDirectory, 'secrets'))
        .filter((file) => !file.endsWith('.pem') && file !== 'ca.key')
        .map((file) => readFileSync(join(it.homeDirectory, 'secrets', file), 'utf8').trim())
      for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
        let text = ''
        try {
          text = readFileSync(`/proc/${pid}/cmdline`, 'utf8') + readFileSync(`/proc/${pid}/environ`, 'utf8')
        } catch {
          continue
        }
        gotIn(
          secrets.some((secret) => text.includes(secret)),
          `process ${pid}`,
        )
      }
    },
  )

  attempt('25', 'connections that say nothing are ended and do not keep others out', async () => {
    const open = (port: number, first: string) =>
      new Promise<{ ended: () => boolean; end: () => void }>((resolve) => {
        let gone = false
        const socket = connect(port, '127.0.0.1', () => {
          socket.write(first)
          resolve({ ended: () => gone, end: () => socket.destroy() })
        })
        socket.on('close', () => {
          gone = true
        })
        socket.on('error', () => {})
        socket.resume()
      })
    const slow = [
      ...(await Promise.all(
        Array.from({ length: 40 }, () =>
          open(
            it.webPort,
            'POST /api/enrol HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{',
          ),
        ),
      )),
      ...(await Promise.all(Array.from({ length: 20 }, () => open(it.agentPort, '')))),
    ]
    try {
      const health = await fetch(`${it.url}/healthz`, { signal: AbortSignal.timeout(5_000) })
      expect(health.status).toBe(200)
      await until('all of them are ended', () => slow.every((s) => s.ended()), 60_000).catch(() =>
        gotIn(true, `${slow.filter((s) => !s.ended()).length} of ${slow.length} are open after 60 s`),
      )
    } finally {
      for (const s of slow) s.end()
    }
  })
})
