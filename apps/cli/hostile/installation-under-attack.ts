import { spawnSync } from 'node:child_process'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { release, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { alive, freePorts, PrivateHome, type Status, until } from '../launcher/private-home'
import { hostileLines } from '../src/suite/hostile-suite'
import { type Deliberate, type Made, note, noteInstance, readLedger } from './ledger'
import type { Created, Role, UnderAttack } from './victim'

type Up = { url: string; setupUrl: string | null; enginePrefix: string; instancesDirectory: string }

const PASSPHRASE = 'correct horse battery staple'
const PORTS = 24
const WEBHOOK_ADDRESS = '127.0.0.2'

/** Puts the installation on an XFS of its own, so that copies share blocks; answers how to take it away, or why it is not there. */
function mountXfs(image: string, directory: string): (() => void) | string {
  writeFileSync(image, '')
  truncateSync(image, 8 * 1024 ** 3)
  for (const [command, ...args] of [
    ['mkfs.xfs', '-q', '-m', 'reflink=1', image],
    ['mount', '-o', 'loop', image, directory],
  ] as [string, ...string[]][]) {
    const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
    if (status !== 0) return `${command}: ${(stderr || error?.message || '').trim()}`
  }
  chmodSync(directory, 0o755)
  return () => spawnSync('umount', [directory])
}

/** A private home that lies in this directory. */
function homeBelow(directory: string): PrivateHome {
  const { TMPDIR: former } = process.env
  process.env.TMPDIR = directory
  try {
    const home = new PrivateHome()
    home.environment.TMPDIR = former
    return home
  } finally {
    if (former === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = former
  }
}

/** One statement to the control database as root; before the parts of the console had users of their own, as its owner. */
function controlSql(up: Up, it: Omit<UnderAttack, 'people' | 'alpha' | 'beta'>, statement: string): string {
  const directories = [join(it.socketDirectory, 'control'), it.socketDirectory]
  const directory = directories.find((d) => existsSync(join(d, `.s.PGSQL.${it.controlPort}`)))
  if (!directory) throw new Error('the control database has no socket')
  const owner = statSync(join(directory, `.s.PGSQL.${it.controlPort}`)).uid
  let said = ''
  for (const uid of [0, owner]) {
    const { status, stdout, stderr } = spawnSync(
      join(up.enginePrefix, 'bin/psql'),
      [
        ...['-XAtqw', '-v', 'ON_ERROR_STOP=1', '-h', directory, '-p', `${it.controlPort}`],
        ...['-U', 'floe', '-d', it.controlName, '-f', '-'],
      ],
      { input: statement, encoding: 'utf8', cwd: '/', env: { PATH: '/usr/bin:/bin' }, uid, gid: uid },
    )
    if (status === 0) return stdout.trim()
    said = stderr
  }
  throw new Error(said)
}

/** The owner by the set-up link, as a person becomes it; the others as rows, with the owner's passphrase. */
async function people(up: Up, it: Omit<UnderAttack, 'people' | 'alpha' | 'beta'>) {
  const email = (role: Role) => `${role}@example.org`
  const token = up.setupUrl?.split('/').at(-1)
  const response = await fetch(`${up.url}/api/trpc/setup.complete`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: up.url },
    body: JSON.stringify({
      json: { token, name: 'Olga Owner', email: email('owner'), passphrase: PASSPHRASE },
    }),
  })
  if (!response.ok) throw new Error(`setup.complete: ${await response.text()}`)
  const all = {} as UnderAttack['people']
  for (const role of ['owner', 'admin', 'operator', 'viewer'] as const) {
    const bearer = randomBytes(24).toString('base64url')
    let userId = controlSql(up, it, `SELECT id FROM "user" WHERE email = '${email('owner')}'`)
    if (role !== 'owner') {
      const from = userId
      userId = randomUUID()
      const copy = (table: string, where: string, changes: string) =>
        controlSql(
          up,
          it,
          `INSERT INTO "${table}" SELECT (jsonb_populate_record(null::"${table}", to_jsonb(t) || ${changes})).*
             FROM "${table}" t WHERE t.${where} = '${from}'`,
        )
      copy(
        'user',
        'id',
        `jsonb_build_object('id', '${userId}', 'name', '${role}', 'email', '${email(role)}')`,
      )
      copy(
        'account',
        '"userId"',
        `jsonb_build_object('id', '${randomUUID()}', 'userId', '${userId}', 'accountId', '${userId}')`,
      )
      copy(
        'member',
        '"userId"',
        `jsonb_build_object('id', '${randomUUID()}', 'userId', '${userId}', 'role', '${role}')`,
      )
    }
    const hash = createHash('sha256').update(bearer).digest('hex')
    controlSql(
      up,
      it,
      `INSERT INTO api_token (id, name, "tokenHash", "userId") VALUES ('${randomUUID()}', '${role}', '${hash}', '${userId}')`,
    )
    all[role] = { email: email(role), token: bearer, userId }
  }
  return all
}

/** What no run of this suite tries, and what this machine keeps it from trying. */
function notTriedAnywhere(): { finding: string; guarantee: string; detail: string }[] {
  const systemd = existsSync('/run/systemd/system')
  return [
    ...(systemd
      ? []
      : [
          {
            finding: '1',
            guarantee: 'the sandbox of a systemd unit holds an instance',
            detail: 'no systemd runs here; setpriv does the same and was attacked',
          },
        ]),
    {
      finding: '1',
      guarantee: 'users are kept apart by other kernels and architectures',
      detail: `only Linux ${release()} on ${process.arch} was attacked; faults of the kernel itself were not`,
    },
    {
      finding: 'neighbour of 6',
      guarantee: 'hosts and networks of others are strangers',
      detail: 'the hostile host is a process of this machine; no second machine, no spoofed address',
    },
    {
      finding: 'neighbour of 8',
      guarantee: 'WAL and pages that a member itself forges harm no other member',
      detail:
        'a standby applies what its primary sends: whoever is superuser of one member owns its cluster’s data',
    },
  ]
}

const postmasterOf = (instance: Created): number =>
  Number(readFileSync(join(instance.directory, 'pgdata/postmaster.pid'), 'utf8').split('\n')[0])

/** Brings up a private installation with an attacker's instance and somebody else's, and judges at the end what is left of it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (process.getuid?.() !== 0)
    throw new Error('the hostile suite needs root: what it attacks are boundaries between users')
  const scratch = mkdtempSync(join(tmpdir(), 'floe-hostile-'))
  chmodSync(scratch, 0o755)
  const ledger = join(scratch, 'ledger')
  const mounted = join(scratch, 'xfs')
  mkdirSync(mounted)
  const unmount = mountXfs(join(scratch, 'image'), mounted)
  const home = homeBelow(mounted)
  const takeAway = async () => {
    await home.remove()
    if (typeof unmount === 'function') unmount()
    rmSync(scratch, { recursive: true, force: true })
  }
  try {
    const base = await freePorts(PORTS)
    const up = await home.json<Up>(
      'up',
      '--port',
      `${base}`,
      '--instance-ports',
      `${base + 3}-${base + PORTS - 1}`,
    )
    const configFile = join(home.directory, 'config.json')
    const config = JSON.parse(readFileSync(configFile, 'utf8')) as {
      [name: string]: unknown
      controlDatabase: { name: string; port?: number }
    }
    // one address of this machine is allowed, so that what is sent there shows that webhooks are sent at all
    writeFileSync(configFile, JSON.stringify({ ...config, webhookAddresses: [WEBHOOK_ADDRESS] }))
    await home.json('up')
    const shared = {
      webhookAddress: WEBHOOK_ADDRESS,
      homeDirectory: home.directory,
      url: up.url,
      enginePrefix: up.enginePrefix,
      installationId: String(config.installationId),
      instancesDirectory: String(config.instancesDirectory),
      socketDirectory: String(config.socketDirectory),
      consoleDirectory: String(config.consoleDirectory ?? home.directory),
      controlPort: Number(config.controlDatabase.port ?? config.controlPort),
      controlName: config.controlDatabase.name,
      webPort: Number(config.webPort),
      agentPort: Number(config.agentPort),
      hostId: String(config.hostId),
      ledger,
      passphrase: PASSPHRASE,
    }
    const it: UnderAttack = {
      ...shared,
      people: await people(up, shared),
      alpha: await home.json<Created>('instance', 'create', 'alpha'),
      beta: await home.json<Created>('instance', 'create', 'beta'),
    }
    for (const { instanceId } of [it.alpha, it.beta]) noteInstance(ledger, instanceId)
    if (typeof unmount === 'string')
      note(ledger, {
        finding: '4',
        guarantee: 'copies that share blocks',
        outcome: 'cannot be tried here',
        detail: unmount,
      })
    for (const notTried of notTriedAnywhere()) note(ledger, { ...notTried, outcome: 'cannot be tried here' })
    project.provide('underAttack', it)
    const before = await home.status()
    const beta = postmasterOf(it.beta)

    return async () => {
      const { attempts, deliberate, made } = readLedger(ledger)
      const crashed = await whatCrashed(home, before, deliberate)
      const server = expectedPid(deliberate, 'beta', beta)
      if (server !== null && !alive(server)) crashed.push('the server of instance beta')
      crashed.push(...killedBackends(it.beta))
      const failed = await deleteInstances(home)
      await home.run(['down', '--instances'])
      const leftBehind = [...failed, ...whatIsLeft(it, made)]
      await takeAway()
      conclude({
        attempts: attempts.filter((a) => a.outcome !== 'cannot be tried here').length,
        gotIn: attempts.filter((a) => a.outcome === 'got in').map((a) => `${a.finding}: ${a.guarantee}`),
        notMade: attempts.filter((a) => a.outcome === 'not made').map((a) => `${a.finding}: ${a.guarantee}`),
        notTried: attempts
          .filter((a) => a.outcome === 'cannot be tried here')
          .map((a) => `${a.finding}: ${a.guarantee} (${a.detail})`),
        crashed,
        leftBehind,
      })
    }
  } catch (error) {
    await takeAway()
    throw error
  }
}

/** The process that has to be there at the end: the one of the beginning, or who took its place on purpose; null where nobody knows. */
function expectedPid(deliberate: Deliberate[], name: string, before: number | null): number | null {
  const last = deliberate.findLast((d) => d.deliberately === name)
  return last === undefined ? before : last.pid
}

async function whatCrashed(home: PrivateHome, before: Status, deliberate: Deliberate[]): Promise<string[]> {
  const crashed: string[] = []
  await until('Floe runs at the end', async () => (await home.status()).state === 'running', 60_000).catch(
    () => crashed.push('Floe does not run any more'),
  )
  const { processes } = await home.status()
  for (const { name, pid } of before.processes) {
    const expected = expectedPid(deliberate, name, pid)
    if (expected !== null && processes.find((p) => p.name === name)?.pid !== expected)
      crashed.push(`${name} is not the process that it was`)
  }
  return crashed
}

/** A server goes on after one of its processes was killed by a signal; its log tells. */
function killedBackends({ directory }: Created): string[] {
  const log = join(directory, 'log')
  return readdirSync(log)
    .flatMap((name) => readFileSync(join(log, name), 'utf8').split('\n'))
    .filter((line) => line.includes('was terminated by signal'))
    .map((line) => `a process of instance beta: ${line.slice(0, 200)}`)
}

async function deleteInstances(home: PrivateHome): Promise<string[]> {
  type Listed = { name: string; role?: string }
  const list = async () => home.json<Listed[]>('instance', 'list')
  const said: string[] = []
  const byRole = (await list().catch(() => [])).sort((a) => (a.role === 'primary' ? 1 : -1))
  for (const { name } of byRole) {
    const { status, stderr } = await home.run(['instance', 'delete', name, '--confirm', name])
    if (status !== 0 && (await list()).some((i) => i.name === name))
      said.push(`instance ${name} could not be deleted: ${stderr.trim().split('\n').slice(0, 2).join(' ')}`)
  }
  return said
}

/** Processes, users, files and sockets of an installation whose instances are deleted and that is down. */
function whatIsLeft(it: UnderAttack, made: readonly Made[]): string[] {
  const left: string[] = []
  const uids = new Set(made.map((m) => m.uid))
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
      if (Number(pid) === process.pid || Number(pid) === process.ppid) continue
      const here =
        command.includes(it.instancesDirectory) ||
        readlinkSync(`/proc/${pid}/cwd`).startsWith(it.instancesDirectory)
      if (here || uids.has(statSync(`/proc/${pid}`).uid))
        left.push(`process ${pid} (${command.slice(0, 100)})`)
    } catch {
      // it has ended meanwhile
    }
  const users = readFileSync('/etc/passwd', 'utf8')
  for (const name of readdirSync('/dev/shm'))
    if (uids.has(lstatSync(join('/dev/shm', name)).uid)) left.push(`shared memory ${name}`)
  for (const { instance } of made) {
    const name = `floe-${instance.slice(-12)}`
    if (users.includes(`\n${name}:`)) left.push(`user ${name}`)
  }
  // root's own directory for trials is kept, empty
  for (const name of existsSync(it.instancesDirectory) ? readdirSync(it.instancesDirectory) : [])
    if (
      name !== 'control' &&
      !(name === '.trials' && readdirSync(join(it.instancesDirectory, name)).length === 0)
    )
      left.push(`file ${join(it.instancesDirectory, name)}`)
  const sockets = (directory: string): string[] =>
    existsSync(directory)
      ? readdirSync(directory, { withFileTypes: true }).flatMap((entry) =>
          entry.isDirectory()
            ? sockets(join(directory, entry.name))
            : entry.isSocket() || entry.isSymbolicLink()
              ? [join(directory, entry.name)]
              : [],
        )
      : []
  for (const path of sockets(it.socketDirectory)) left.push(`socket ${path}`)
  return left
}

function conclude(summary: Parameters<typeof hostileLines>[0]): void {
  const file = process.env.FLOE_HOSTILE_SUMMARY
  if (file) writeFileSync(file, JSON.stringify(summary))
  else {
    process.stdout.write(`${hostileLines(summary).join('\n')}\n`)
    if (summary.crashed.length + summary.leftBehind.length > 0) process.exitCode = 1
  }
}
