import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  unlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fault } from '@floe/domain'
import { listPids, runsAs } from '@floe/host/process-facts'
import { createFile, replaceFile } from '@floe/host/replace-file'
import { waitFor } from '@floe/host/wait'
import { z } from 'zod'
import type { EngineUser } from './engine-user'
import { uidsOfProcesses } from './process-table'
import { runCommand } from './run-command'
import { type UidRange, uidsWithFiles } from './uids-with-files'

/**
 * Users of the operating system, one for each instance of a root installation: an instance's superuser runs programs as
 * it, and reaches its own tree with it and nothing else.
 *
 * - Whose a uid is stands in one file of the machine, whatever installation asked: `<directory>/<uid>.json`, created
 *   exclusively.
 * - Uids are given out upwards. One is given out again only when the range is used up, and then only when nobody has it,
 *   no process runs with it, and a look through every local file system finds no file of it.
 * - How far they were given out stands in `<directory>/next`. Where that is lost, it follows from who has a uid of the range,
 *   processes, and files; a search that fails is a refusal, never the beginning of the range.
 *
 * Network file systems and FUSE are never searched (uids-with-files.ts).
 */
export class InstanceUsers {
  readonly #directory: string
  readonly #home: string
  readonly #range: UidRange
  readonly #filesBelow: string
  #turn: Promise<unknown> = Promise.resolve()

  /** Tests give a directory of their own for the claims, and one in which files are looked for instead of everywhere. */
  constructor(o: {
    home: string
    range?: UidRange | undefined
    directory?: string
    filesBelow?: string
  }) {
    this.#filesBelow = o.filesBelow ?? '/'
    this.#home = o.home
    this.#range = o.range ?? DEFAULT_RANGE
    this.#directory = o.directory ?? CLAIMS
  }

  /**
   * Finds out which uid is next where that is not written down, so that no claim has to wait for the search. Throws
   * `host.no_user` when it is not known.
   */
  prepare(): Promise<void> {
    return this.#inTurn(async () => {
      this.#makeDirectory()
      await this.#next()
    })
  }

  /** The user of an instance, made at the first asking. */
  claim(instanceId: string): Promise<OwnUser> {
    return this.#inTurn(async () => {
      this.#makeDirectory()
      await this.#forgetHomesThatAreGone()
      const name = userNameOf(instanceId)
      const known = this.#claims().find((c) => c.instanceId === instanceId)
      const uid = known?.uid ?? (await this.#take(instanceId, name))
      try {
        // also of one that a killed agent claimed
        this.#noteGiven(uid)
        const ids = idsOf(name)
        if (ids && ids.uid !== uid)
          throw fault('host.no_user', `user "${name}" has uid ${ids.uid}, not ${uid}`, {
            detail: `"${this.#directory}" records the uid of the instance.`,
            hint: 'One of the two was restored or edited. Put it right, then try again.',
          })
        return { name, uid, gid: ids?.gid ?? (await addUser(name, uid)) }
      } catch (error) {
        if (!known) rmSync(this.#file(uid), { force: true })
        throw error
      }
    })
  }

  /**
   * The user of an instance whose files have this owner already: by its claim or, where that is lost, by the uid, as long as
   * it is one that could have been given to it and nobody else has it. Changes nothing with `checkOnly`. Throws
   * `host.not_its_user`.
   */
  reclaim(
    instanceId: string,
    owner: { uid: number; gid: number },
    { checkOnly = false }: { checkOnly?: boolean } = {},
  ): Promise<OwnUser> {
    return this.#inTurn(async () => {
      this.#makeDirectory()
      const name = userNameOf(instanceId)
      const claimed = await this.#refuseOthers(instanceId, name, owner)
      const user = { name, ...owner }
      if (checkOnly) return user
      if (!claimed && !this.#claimFile(owner.uid, instanceId, name))
        throw this.#notItsUser(owner.uid, 'Another agent of this machine has just assigned it.')
      if (idsOf(name) === null) await addUser(name, owner.uid)
      this.#noteGiven(owner.uid)
      return user
    })
  }

  /** Answers whether a claim says that the uid is the instance's; throws where it is, or may be, anybody else's. */
  async #refuseOthers(
    instanceId: string,
    name: string,
    { uid, gid }: { uid: number; gid: number },
  ): Promise<boolean> {
    const claims = this.#claims()
    const claim = claims.find((c) => c.uid === uid)
    if (!claim && existsSync(this.#file(uid)))
      throw this.#notItsUser(uid, `Whose it is cannot be read from "${this.#file(uid)}".`)
    if (claim && (claim.instanceId !== instanceId || claim.home !== this.#home))
      throw this.#notItsUser(
        uid,
        `It was given to instance ${claim.instanceId} of the installation in "${claim.home}".`,
      )
    const other = claims.find((c) => c.instanceId === instanceId && c.uid !== uid)
    if (other) throw this.#notItsUser(uid, `The instance has uid ${other.uid}.`)
    const { from, to } = this.#range
    if (!claim && (uid < from || uid > to))
      throw this.#notItsUser(uid, `Instances are given uids from ${from} to ${to}.`)
    const { status, stdout } = await runCommand('getent', ['passwd', String(uid)], { timeoutMs: 10_000 })
    const holder = status === 0 ? (stdout.split(':')[0] ?? '') : status === 2 ? null : ''
    if (holder !== null && holder !== name)
      throw this.#notItsUser(uid, holder ? `It is user "${holder}".` : 'Whose it is could not be asked.')
    const ids = idsOf(name)
    if (ids && ids.uid !== uid) throw this.#notItsUser(uid, `User "${name}" has uid ${ids.uid}.`)
    // a group of the same number is made with a user
    const group = ids?.gid ?? uid
    if (gid !== group)
      throw this.#notItsUser(uid, `Its group is ${gid}, and that of user "${name}" is ${group}.`)
    return claim !== undefined
  }

  /**
   * Ends every process of an instance's user and removes the user. Its files are gone by then, save what it left elsewhere:
   * that is why its uid is not given out again. Safe to run twice.
   */
  release(instanceId: string, user: OwnUser): Promise<void> {
    return this.#inTurn(async () => {
      await endProcessesOf(user)
      await removeSharedMemory(user.uid)
      await removeUser(user.name)
      const claim = this.#claims().find((c) => c.instanceId === instanceId)
      if (claim) rmSync(this.#file(claim.uid), { force: true })
    })
  }

  #notItsUser(uid: number, detail: string) {
    return fault('host.not_its_user', `uid ${uid} is not that of the instance’s own user`, {
      detail,
      hint: `"${this.#directory}" records the uid of each instance. Find out whose the files are.`,
    })
  }

  #makeDirectory(): void {
    // others may pass the directory above, in which whole installations lie
    makePassable(dirname(this.#directory))
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#turn.then(work, work)
    this.#turn = next.catch(() => {})
    return next
  }

  #file(uid: number): string {
    return join(this.#directory, `${uid}.json`)
  }

  #claims(): Claim[] {
    return readdirSync(this.#directory).flatMap((name) => {
      if (!/^\d+\.json$/.test(name)) return []
      try {
        return [Claim.parse(JSON.parse(readFileSync(join(this.#directory, name), 'utf8')))]
      } catch {
        // broken: its uid stays taken, as its file is there
        return []
      }
    })
  }

  /**
   * Users of throw-away installations that were killed have nobody left who would remove them. Any other home that is not
   * there may be on a disk that is not mounted.
   */
  async #forgetHomesThatAreGone(): Promise<void> {
    for (const claim of this.#claims()) {
      if (!claim.home.startsWith(`${tmpdir()}/`) || existsSync(claim.home)) continue
      await endProcessesOf(claim)
      await removeSharedMemory(claim.uid)
      await removeUser(claim.name)
      rmSync(this.#file(claim.uid), { force: true })
    }
  }

  async #take(instanceId: string, name: string): Promise<number> {
    const { from, to } = this.#range
    for (let uid = await this.#next(); uid <= to; uid++) {
      if (!(await this.#tryTake(uid, instanceId, name))) continue
      if (uid >= (this.#noted() ?? 0)) return uid
      // another agent came further while this one searched or asked, and may have given it out already
      rmSync(this.#file(uid), { force: true })
    }
    const left = await uidsWithFiles(this.#filesBelow, this.#range).catch((error: Error) => {
      throw fault('host.no_user_left', 'no user is left for another instance', {
        detail: `The reusable uids are unknown, because not every file system could be searched: ${error.message}.`,
      })
    })
    for (let uid = from; uid <= to; uid++)
      if (!left.has(uid) && (await this.#tryTake(uid, instanceId, name))) return uid
    throw fault('host.no_user_left', 'no user is left for another instance', {
      detail: `Every uid from ${from} to ${to} is in use, or still owns files on this host.`,
      hint: 'Widen the range with "instanceUsers" in config.json, then restart the agent.',
    })
  }

  /** The first uid that was never given out. */
  async #next(): Promise<number> {
    const { from, to } = this.#range
    const noted = this.#noted()
    if (noted !== null) return Math.max(from, noted)
    const cannotTell = (detail: string) =>
      fault('host.no_user', 'the uids assigned to instances are unknown', {
        detail: `"${this.#nextFile()}" is missing or damaged. ${detail}`,
        hint: `Search by hand for files of uids ${from} to ${to}, and write the first uid that no instance ever had into that file.`,
      })
    const { status, stdout } = await runCommand('getent', ['passwd'], {
      timeoutMs: 60_000,
      outputMaxBytes: 1 << 26,
    })
    if (status !== 0) throw cannotTell('The list of users could not be read.')
    const files = await uidsWithFiles(this.#filesBelow, this.#range).catch((error: Error) => {
      throw cannotTell(`Not every file system could be searched: ${error.message}.`)
    })
    const seen = [
      ...stdout.split('\n').map((line) => Number(line.split(':')[2])),
      ...readdirSync(this.#directory).map((name) => Number(/^(\d+)\.json$/.exec(name)?.[1])),
      ...uidsOfProcesses(),
      ...files,
    ].filter((uid) => uid >= from && uid <= to)
    const next = seen.reduce((highest, uid) => Math.max(highest, uid), from - 1) + 1
    this.#noteNext(next)
    return next
  }

  #noted(): number | null {
    const path = this.#nextFile()
    const text = existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
    const noted = [...(/^\d{1,10}$/.test(text) ? [Number(text)] : []), ...this.#nextMarks()]
    return noted.length > 0 ? Math.max(...noted) : null
  }

  #nextMark(uid: number): string {
    return join(this.#directory, `given-below-${uid}`)
  }

  #nextMarks(): number[] {
    return readdirSync(this.#directory).flatMap((name) => {
      const mark = /^given-below-(\d{1,10})$/.exec(name)
      return mark ? [Number(mark[1])] : []
    })
  }

  #nextFile(): string {
    return join(this.#directory, 'next')
  }

  /** Where it is lost which uid is next, it follows from a search, which finds this one too: this one is no beginning. */
  #noteGiven(uid: number): void {
    if (this.#noted() !== null) this.#noteNext(uid + 1)
  }

  /**
   * Another agent of this machine may come further at the same time, and be the first to write: the file would go back then.
   * So each number has a name of its own as well, and only names below another one are removed.
   */
  #noteNext(uid: number): void {
    if (uid <= (this.#noted() ?? 0)) return
    createFile(this.#nextMark(uid), '')
    replaceFile(this.#nextFile(), `${uid}\n`)
    const marks = this.#nextMarks()
    const highest = Math.max(...marks)
    for (const mark of marks) if (mark < highest) rmSync(this.#nextMark(mark), { force: true })
  }

  async #tryTake(uid: number, instanceId: string, name: string): Promise<boolean> {
    if (existsSync(this.#file(uid)) || pidsOf(uid).length > 0) return false
    const { status } = await runCommand('getent', ['passwd', String(uid)], { timeoutMs: 10_000 })
    return status !== 0 && this.#claimFile(uid, instanceId, name)
  }

  /** Writes down durably whose a uid is; false where that stands there already: another agent was faster. */
  #claimFile(uid: number, instanceId: string, name: string): boolean {
    const claim = { uid, name, instanceId, home: this.#home, claimedAt: Date.now() }
    return createFile(this.#file(uid), JSON.stringify(claim))
  }
}

export type OwnUser = { name: string; uid: number; gid: number }

const CLAIMS = '/var/lib/floe/users'
/** Below what containers and subordinate ids take, and within what every user namespace maps. */
const DEFAULT_RANGE = { from: 50_000, to: 59_999 }

const Claim = z.object({ uid: z.number().int(), name: z.string(), instanceId: z.string(), home: z.string() })
type Claim = z.infer<typeof Claim>

/** The last part of an id: the first may be a time. */
export const shortIdOf = (instanceId: string): string => instanceId.slice(-12)
const userNameOf = (instanceId: string): string => `floe-${shortIdOf(instanceId)}`

const LOCK = '/var/lib/floe/users.lock'

/** Programs that change /etc/passwd refuse while another one does. */
function locked(command: string[]) {
  makePassable(dirname(LOCK))
  return runCommand('flock', [LOCK, ...command], { timeoutMs: 60_000 })
}

/** A directory that others may pass, whatever the umask; one that is there stays as it is. */
function makePassable(directory: string): void {
  if (mkdirSync(directory, { recursive: true, mode: 0o755 }) !== undefined) chmodSync(directory, 0o755)
}

function idsOf(name: string): { uid: number; gid: number } | null {
  const row = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find((columns) => columns[0] === name)
  return row ? { uid: Number(row[2]), gid: Number(row[3]) } : null
}

async function addUser(name: string, uid: number): Promise<number> {
  const r = await locked([
    '/usr/sbin/useradd',
    ...[`UID_MIN=${uid}`, `UID_MAX=${uid}`, `GID_MIN=${uid}`, `GID_MAX=${uid}`].flatMap((o) => [
      '-K',
      `SYS_${o}`,
    ]),
    ...['--system', '--user-group', '--uid', String(uid), '--no-create-home', '--home-dir', '/nonexistent'],
    ...['--shell', '/usr/sbin/nologin', '--comment', 'Floe instance', name],
  ])
  const ids = idsOf(name)
  if (ids?.uid === uid) return ids.gid
  throw fault('host.no_user', `could not make user "${name}" for the instance`, {
    detail: r.stderr.trim() || `useradd ended with status ${r.status ?? r.signal}.`,
  })
}

async function removeUser(name: string): Promise<void> {
  if (idsOf(name) === null) return
  const r = await locked(['/usr/sbin/userdel', name])
  if (idsOf(name) !== null)
    throw fault('host.user_left', `could not remove user "${name}"`, { detail: r.stderr.trim() })
}

/** Processes that have this uid in any way. */
const pidsOf = (uid: number): number[] => listPids().filter((pid) => runsAs(pid, uid))

/** All at once and as that user, so that one which forks faster than it is looked for ends, too. */
async function endProcessesOf(user: OwnUser | Claim): Promise<void> {
  const as: EngineUser = { name: user.name, uid: user.uid, gid: 'gid' in user ? user.gid : user.uid }
  const ended = await waitFor(
    async () => {
      if (pidsOf(user.uid).length === 0) return true
      await runCommand('/bin/sh', ['-c', 'kill -9 -1'], { user: as, timeoutMs: 10_000 })
      return pidsOf(user.uid).length === 0
    },
    { boundMs: 15_000, everyMs: 50 },
  )
  if (ended === null)
    throw fault('host.processes_left', `processes of user "${user.name}" could not be ended`, {
      detail: `They are ${pidsOf(user.uid).slice(0, 10).join(', ')}.`,
    })
}

/** What an engine that was killed leaves in memory: nobody of that user is left who could be using it. */
async function removeSharedMemory(uid: number): Promise<void> {
  for (const name of readdirSync('/dev/shm')) {
    const path = join('/dev/shm', name)
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (stat?.isFile() && stat.uid === uid) unlinkSync(path)
  }
  for (const [kind, option] of [
    ['shm', '-m'],
    ['sem', '-s'],
    ['msg', '-q'],
  ] as const) {
    const [head = '', ...rows] = readFileSync(`/proc/sysvipc/${kind}`, 'utf8').trim().split('\n')
    const column = head.trim().split(/\s+/).indexOf('uid')
    for (const row of rows.map((r) => r.trim().split(/\s+/)))
      if (Number(row[column]) === uid)
        await runCommand('ipcrm', [option, row[1] as string], { timeoutMs: 10_000 })
  }
}
