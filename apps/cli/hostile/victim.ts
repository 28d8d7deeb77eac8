import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
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
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject, test } from 'vitest'
import { PrivateHome, until } from '../launcher/private-home'
import { findPostmaster } from '../src/process/postmaster'
import { note } from './ledger'

export type Created = {
  instanceId: string
  port: number
  connectionString: string
  password: string
  directory: string
}

/** What the set-up made before the first attack. */
export type UnderAttack = {
  homeDirectory: string
  url: string
  enginePrefix: string
  installationId: string
  instancesDirectory: string
  socketDirectory: string
  consoleDirectory: string
  controlPort: number
  controlName: string
  webPort: number
  agentPort: number
  hostId: string
  ledger: string
  /** An address of this machine that config.json lets webhooks go to. */
  webhookAddress: string
  /** Somebody in each role, with one passphrase for all and a token each. */
  people: Record<Role, { email: string; token: string; userId: string }>
  passphrase: string
  /** `alpha` is the attacker's; `beta` is somebody else's. */
  alpha: Created
  beta: Created
}
export type Role = 'viewer' | 'operator' | 'admin' | 'owner'

declare module 'vitest' {
  interface ProvidedContext {
    underAttack: UnderAttack
  }
}

/** The OS user of a stranger with an account on the machine. */
export const NOBODY = 65534

class GotIn extends Error {}

/** Ends the attempt as one that got in, where the evidence says so. */
export function gotIn(yes: boolean, evidence: string): void {
  if (yes) throw new GotIn(`GOT IN: ${evidence}`)
}

/** One attempt: its finding, and the guarantee that it tries to break. */
export function attempt(finding: string, guarantee: string, body: () => Promise<void> | void): void {
  test(`${finding}: ${guarantee}`, async () => {
    const { ledger } = inject('underAttack')
    try {
      await body()
      note(ledger, { finding, guarantee, outcome: 'held' })
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      note(ledger, { finding, guarantee, outcome: error instanceof GotIn ? 'got in' : 'not made', detail })
      throw error
    }
  })
}

/** Names what this machine does not let us try. */
export function cannotTry(finding: string, guarantee: string, why: string): void {
  test.skip(`${finding}: ${guarantee} (${why})`)
  note(inject('underAttack').ledger, { finding, guarantee, outcome: 'cannot be tried here', detail: why })
}

/** An installation that is already there, for the verbs. */
export class Home extends PrivateHome {
  static at(directory: string): Home {
    const home = new Home()
    rmSync(home.directory, { recursive: true, force: true })
    Object.assign(home, { directory, environment: { ...home.environment, FLOE_HOME: directory } })
    return home
  }
}

export const it = inject('underAttack')
export const home = it === undefined ? (undefined as never) : Home.at(it.homeDirectory)

/** Ends a process of Floe as its administrator would, so that its end is no crash. */
export async function deliberately<T>(names: string[], action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } finally {
    const { processes } = names.length > 0 ? await home.status() : { processes: [] }
    for (const name of names) {
      const pid =
        name === 'beta'
          ? (findPostmaster(join(it.beta.directory, 'pgdata'))?.pid ?? null)
          : (processes.find((p) => p.name === name)?.pid ?? null)
      note(it.ledger, { deliberately: name, pid })
    }
  }
}

export type Ran = { status: number; out: string; err: string }
type RunOptions = { uid?: number; gid?: number; input?: string; env?: NodeJS.ProcessEnv; timeoutMs?: number }

/** Runs a program, by default as root, without this process's environment. */
export function run(file: string, args: string[], options: RunOptions = {}): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(
      file,
      args,
      {
        cwd: '/',
        env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C.UTF-8', ...options.env },
        timeout: options.timeoutMs ?? 30_000,
        killSignal: 'SIGKILL',
        maxBuffer: 64 * 1024 * 1024,
        ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.gid ?? options.uid }),
      },
      (error, out, err) =>
        resolve({ status: error === null ? 0 : typeof error.code === 'number' ? error.code : 128, out, err }),
    )
    child.stdin?.on('error', () => {})
    child.stdin?.end(options.input ?? '')
  })
}

export const shellAs = (uid: number, script: string, options: Omit<RunOptions, 'uid'> = {}) =>
  run('/bin/sh', ['-c', script], { ...options, uid })

/** No attacker outlives its test by much, however that ended, nor what it says the memory of this process. */
const BOUNDED = `
import ctypes, os, signal
ctypes.CDLL(None).prctl(1, 9)
signal.alarm(180)
`
const SAID_MAX = 1 << 20

/** A Python program of another user that goes on until it is ended; it says "ready" once it has begun. */
export async function watcher(
  uid: number,
  program: string,
  ...args: string[]
): Promise<{ child: ChildProcess; said: () => string; end: () => Promise<string> }> {
  const child = spawn('/usr/bin/python3', ['-u', '-c', BOUNDED + program, ...args], {
    uid,
    gid: uid,
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      if (said.length < SAID_MAX) said += text
    })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await until('the attacker has begun', () => said.includes('ready') || child.exitCode !== null, 20_000)
  return {
    child,
    said: () => said,
    end: async () => {
      child.kill('SIGKILL')
      await gone
      return said
    },
  }
}

const psqlOf = () => join(it.enginePrefix, 'bin/psql')

/** Statements to an instance over the network, as whoever the connection string names. */
export async function sql(
  { connectionString }: Pick<Created, 'connectionString'>,
  statements: string,
  user?: { name: string; password: string },
): Promise<Ran> {
  const url = new URL(connectionString)
  if (user) {
    url.username = user.name
    url.password = user.password
  }
  return run(psqlOf(), ['-XAtq', '-w', '-v', 'ON_ERROR_STOP=1', '-f', '-', url.toString()], {
    input: statements,
  })
}

export async function must(ran: Promise<Ran>): Promise<string> {
  const { status, out, err } = await ran
  if (status !== 0) throw new Error(err || out)
  return out.trim()
}

/** What a superuser of an instance gets by COPY … FROM PROGRAM: a shell of the user that the instance runs as. */
export async function shellBySql(instance: Created, script: string): Promise<string> {
  const encoded = Buffer.from(script).toString('base64')
  const out = await must(
    sql(
      instance,
      `create temp table said (line text);
       copy said from program 'echo ${encoded} | base64 -d | sh 2>&1 | base64 -w 0; echo';
       select coalesce(string_agg(line, ''), '') from said;`,
    ),
  )
  return Buffer.from(out, 'base64').toString('utf8')
}

/** The user that an instance's files belong to, which is what its server runs as. */
export const uidOf = (instance: Created): number => statSync(join(instance.directory, 'pgdata')).uid

/** One statement to the control database as its administrator: root at its socket. */
export async function controlSql(statement: string): Promise<string> {
  const socket = findSockets(it.socketDirectory).find((path) => path.endsWith(`/.s.PGSQL.${it.controlPort}`))
  if (!socket) throw new Error('the control database has no socket')
  const args = ['-XAtq', '-w', '-v', 'ON_ERROR_STOP=1', '-h', join(socket, '..'), '-p', `${it.controlPort}`]
  args.push('-U', 'floe', '-d', it.controlName, '-f', '-')
  const asRoot = await run(psqlOf(), args, { input: statement })
  if (asRoot.status === 0) return asRoot.out.trim()
  return must(run(psqlOf(), args, { input: statement, uid: statSync(socket).uid }))
}

/** Unix sockets below a directory. */
export function findSockets(directory: string): string[] {
  if (!existsSync(directory)) return []
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return findSockets(path)
    return entry.isSocket() ? [path] : []
  })
}

/** Regular files below a directory, as root sees them. */
export function filesBelow(directory: string): string[] {
  if (!existsSync(directory)) return []
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return filesBelow(path)
    return entry.isFile() ? [path] : []
  })
}

/** What nobody but root may reach, with a canary in each file. Answers why it is not as it was, or null. */
export class Vault {
  readonly directory: string
  readonly canary = `canary-${randomBytes(12).toString('hex')}`
  readonly #before: string

  /** @param text what its files hold beside the canary, for readers that look for more than a word. */
  constructor(names: string[] = [], text: (canary: string) => string = (canary) => `${canary}\n`) {
    this.directory = mkdtempSync(join(tmpdir(), 'floe-vault-'))
    mkdirSync(join(this.directory, 'archive_status'))
    for (const name of ['canary', ...names])
      writeFileSync(join(this.directory, name), text(this.canary), { mode: 0o600 })
    chmodSync(this.directory, 0o700)
    this.#before = this.#inventory()
  }

  path(name = 'canary'): string {
    return join(this.directory, name)
  }

  #inventory(): string {
    const lines: string[] = []
    const walk = (path: string) => {
      const s = lstatSync(path)
      const what = s.isSymbolicLink() ? readlinkSync(path) : s.isFile() ? readFileSync(path, 'latin1') : ''
      lines.push(`${path} ${s.mode.toString(8)} ${s.uid}:${s.gid} ${what}`)
      if (s.isDirectory()) for (const name of readdirSync(path).sort()) walk(join(path, name))
    }
    walk(this.directory)
    return lines.join('\n')
  }

  changed(): string | null {
    const now = this.#inventory()
    if (now === this.#before) return null
    const [before, after] = [this.#before.split('\n'), now.split('\n')]
    return [
      ...before.filter((l) => !after.includes(l)).map((l) => `-${l}`),
      ...after.filter((l) => !before.includes(l)).map((l) => `+${l}`),
    ]
      .slice(0, 4)
      .join('; ')
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }
}

export type Answer = { status: number; text: string; headers: Headers }

/** Asks web as a program or a page would; never throws for a status. */
export async function ask(
  path: string,
  init: RequestInit & { duplex?: 'half'; timeoutMs?: number } = {},
): Promise<Answer> {
  const response = await fetch(`${it.url}${path}`, {
    redirect: 'manual',
    signal: AbortSignal.timeout(init.timeoutMs ?? 20_000),
    ...init,
  })
  return { status: response.status, text: await response.text(), headers: response.headers }
}

export type Caller = { token: string } | { cookie: string } | null
const credentials = (caller: Caller): Record<string, string> =>
  caller === null
    ? {}
    : 'token' in caller
      ? { authorization: `Bearer ${caller.token}` }
      : { cookie: caller.cookie }

/** One procedure of the console's API. */
export async function call(
  caller: Caller,
  kind: 'query' | 'mutation',
  path: string,
  input?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const body = JSON.stringify({ json: input ?? null })
  if (kind === 'query')
    return ask(`/api/trpc/${path}${input === undefined ? '' : `?input=${encodeURIComponent(body)}`}`, {
      headers: { ...credentials(caller), ...headers },
    })
  return ask(`/api/trpc/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: it.url, ...credentials(caller), ...headers },
    body,
  })
}

export const answerOf = <T>({ text }: Answer): T =>
  (JSON.parse(text) as { result: { data: { json: T } } }).result.data.json

/** Signs in as a browser does; the cookie where it was let in. */
export async function signIn(
  role: Role,
  passphrase = it.passphrase,
  headers: Record<string, string> = {},
): Promise<{ status: number; cookie: string; text: string }> {
  const {
    status,
    headers: answered,
    text,
  } = await ask('/api/auth/sign-in/email', {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: it.url, ...headers },
    body: JSON.stringify({ email: it.people[role].email, password: passphrase }),
  })
  const cookie = answered
    .getSetCookie()
    .map((c) => c.split(';')[0])
    .join('; ')
  return { status, cookie, text }
}

/** Bytes of memory that a process holds now. */
export function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
}

/** Brings an instance back to life after an attack on it, so that the next one has something to attack. */
export async function revive(name: string): Promise<void> {
  const runs = async () =>
    (await home.run(['instance', 'show', name, '--json'])).stdout.includes('"state": "running"')
  let said = ''
  for (let i = 0; i < 4; i++) {
    if (await runs()) return
    // an agent that an attack has hung is ended, so that the supervisor starts another
    if (/stale|unknown/.test((await home.run(['instance', 'show', name])).stdout))
      await deliberately(['agent'], async () => {
        process.kill(await home.pidOf('agent'), 'SIGKILL')
        await until('the agent runs again', async () => (await home.status()).state === 'running')
      })
    said = (await home.run(['instance', 'start', name])).stderr
  }
  await until(`instance ${name} runs again (${said.trim()})`, runs, 30_000)
}

/** A shared library whose constructor leaves a file behind, built where its attacker may write. */
export function hostileLibrary(directory: string, mark: string): string {
  const source = join(directory, `${randomUUID()}.c`)
  const library = source.replace(/\.c$/, '.so')
  writeFileSync(
    source,
    `#include <stdio.h>\n#include <unistd.h>\n__attribute__((constructor)) static void in(void)
     { FILE *f = fopen("${mark}", "a"); if (f) { fprintf(f, "uid %d\\n", geteuid()); fclose(f); } }\n`,
  )
  const built = spawnSync('cc', ['-shared', '-fPIC', '-o', library, source])
  if (built.status !== 0) throw new Error(built.stderr.toString())
  chmodSync(library, 0o755)
  return library
}

/** A directory that everybody may write to, for what an attacker leaves behind as evidence. */
export function openDirectory(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'floe-evidence-'))
  chmodSync(path, 0o777)
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

export const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
