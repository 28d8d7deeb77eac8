import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { type ConsoleUsers, fault } from '@floe/domain'

/** Who a process runs as. `switchTo` is only set where a process of ours has to change to that user. */
export type OsUser = { name: string; switchTo: { uid: number; gid: number } | null }

export const isRoot = (): boolean => process.getuid?.() === 0

/** The user of this process. */
export const ownUser = (): OsUser => ({ name: userInfo().username, switchTo: null })

function numberOf(flag: '-u' | '-g', name: string): number | null {
  const { status, stdout } = spawnSync('id', [flag, name], { encoding: 'utf8' })
  return status === 0 ? Number(stdout.trim()) : null
}

/** The fields of a name in /etc/passwd or /etc/group; null where it is not there, as where a directory service knows it. */
function fieldsOf(file: '/etc/passwd' | '/etc/group', name: string): string[] | null {
  const line = readFileSync(file, 'utf8')
    .split('\n')
    .find((one) => one.startsWith(`${name}:`))
  return line?.split(':') ?? null
}

/** A user of this machine by its name; null when there is none. */
export function findUser(name: string): OsUser | null {
  if (!isRoot()) return ownUser()
  // commands that wait look many times a second, and a program takes longer than the file
  const [, , ownUid, ownGid] = fieldsOf('/etc/passwd', name) ?? []
  if (ownUid && ownGid) return { name, switchTo: { uid: Number(ownUid), gid: Number(ownGid) } }
  const uid = numberOf('-u', name)
  const gid = numberOf('-g', name)
  return uid === null || gid === null ? null : { name, switchTo: { uid, gid } }
}

/** The user that engines run as where an instance has none of its own. */
export const ENGINE_USER = 'floe'

/** The engine's user as it is, without making it: null when it would have to be made. */
export const findEngineUser = (): OsUser | null => findUser(ENGINE_USER)

/** How long another program may hold the lock of /etc/passwd. */
const LOCK_MS = 10_000

/** Runs one of the programs that change users and groups; they refuse while another one is at it. */
function changeUsers(file: string, args: string[]): { done: boolean; detail: string } {
  const end = Date.now() + LOCK_MS
  for (;;) {
    const { status, stderr, error } = spawnSync(file, args, { encoding: 'utf8' })
    const detail = error?.message ?? (stderr.trim() || `${file} ended with status ${status}.`)
    if (status === 0 || !/lock/.test(detail) || Date.now() > end) return { done: status === 0, detail }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
  }
}

function makeSystemUser(name: string, options: string[] = []): OsUser {
  const { detail } = changeUsers('useradd', [
    '--system',
    '--user-group',
    '--no-create-home',
    '--home-dir',
    '/nonexistent',
    '--shell',
    '/usr/sbin/nologin',
    ...options,
    name,
  ])
  const made = findUser(name)
  if (made === null)
    throw fault('installation.no_user', `could not create the user "${name}"`, {
      detail,
      hint: `Create it yourself: useradd --system --user-group ${name}`,
    })
  return made
}

/** As root: the system user `floe`, made when missing, because PostgreSQL does not run as root. Else the user itself. */
export const ensureEngineUser = (): OsUser => findEngineUser() ?? makeSystemUser(ENGINE_USER)

/**
 * The names of an installation's own users. Two installations of one machine share none: what one's web could reach would
 * be the other's too.
 */
export function consoleUsersOf(installationId: string): ConsoleUsers {
  const own = installationId.slice(0, 8)
  return {
    controlDatabase: `floe-control-${own}`,
    web: `floe-web-${own}`,
    controller: `floe-controller-${own}`,
    group: `floe-console-${own}`,
  }
}

type Account = { name: string; uid: number; comment: string }

function accounts(): Account[] {
  const { stdout } = spawnSync('getent', ['passwd'], { encoding: 'utf8' })
  return (stdout ?? '').split('\n').flatMap((line) => {
    const [name, , uid, , comment] = line.split(':')
    return name && uid ? [{ name, uid: Number(uid), comment: comment ?? '' }] : []
  })
}

/** Says in the list of users whose they are, so that they are not taken for another installation's. */
const commentOf = (installationId: string, home: string) =>
  `Floe ${installationId}${/^[\w./@+-]+$/.test(home) ? ` ${home}` : ''}`

/** The group of web and controller, by number. */
export function groupId(name: string): number | null {
  const own = fieldsOf('/etc/group', name)?.[2]
  if (own) return Number(own)
  const { status, stdout } = spawnSync('getent', ['group', name], { encoding: 'utf8' })
  return status === 0 ? Number(stdout.split(':')[2]) : null
}

/** As root: the users of the control database, web and controller, made when missing. Without root there are none. */
export function ensureConsoleUsers(installationId: string, home: string): ConsoleUsers | null {
  if (!isRoot()) return null
  const users = consoleUsersOf(installationId)
  if (groupId(users.group) === null) changeUsers('groupadd', ['--system', users.group])
  if (groupId(users.group) === null)
    throw fault('installation.no_user', `could not create the group "${users.group}"`, {
      hint: `Create it yourself: groupadd --system ${users.group}`,
    })
  const there = accounts()
  for (const name of [users.controlDatabase, users.web, users.controller]) {
    const account = there.find((a) => a.name === name)
    if (account === undefined)
      makeSystemUser(name, [
        '--comment',
        commentOf(installationId, home),
        ...(name === users.controlDatabase ? [] : ['--groups', users.group]),
      ])
    else if (!account.comment.startsWith(`Floe ${installationId}`))
      throw fault('installation.user_in_use', `user "${name}" was not made for this installation`, {
        detail: `Its comment in the list of users is "${account.comment}".`,
        hint: 'Remove or rename that user.',
      })
  }
  return users
}

/**
 * Removes the users of installations that are gone: no FLOE_HOME, nothing below /var/lib/floe, and no process. What
 * `exists` and `inUse` say is the caller's.
 */
export function forgetConsoleUsers(
  gone: (installationId: string, home: string, uid: number) => boolean,
): string[] {
  if (!isRoot()) return []
  const forgotten: string[] = []
  for (const { name, uid, comment } of accounts()) {
    const own = /^floe-(?:control|web|controller)-([0-9a-f]{8})$/.exec(name)?.[1]
    const [, id, home] = /^Floe ([0-9a-f-]{36}) (\/.*)$/.exec(comment) ?? []
    if (own === undefined || id === undefined || home === undefined || !id.startsWith(own)) continue
    if (!gone(id, home, uid)) continue
    if (changeUsers('userdel', [name]).done) forgotten.push(name)
    if (!accounts().some((a) => a.name.endsWith(`-${own}`))) changeUsers('groupdel', [`floe-console-${own}`])
  }
  return forgotten
}

/** The names of users by number; one that has no name is its number. */
export function namesOfUsers(uids: (number | null)[]): Map<number | null, string> {
  const names = new Map(accounts().map((a) => [a.uid, a.name]))
  return new Map(uids.flatMap((uid) => (uid === null ? [] : [[uid, names.get(uid) ?? String(uid)]])))
}

/** True when the user may go through, read or write what is there, asked by trying it as that user. */
export function reachableBy(user: OsUser, path: string, access: '-r' | '-w' | '-x' = '-x'): boolean {
  const { status } = spawnSync('test', [access, path], { ...user.switchTo, cwd: '/' })
  return status === 0
}

/**
 * The words that run a program with nothing of root left, by setpriv, which becomes the program and so keeps the pid: no
 * supplementary group but the one given, no capability, and none to be had.
 */
export const withoutRoot = (
  { uid, gid }: { uid: number; gid: number },
  group: number | null,
  words: readonly string[],
): string[] => [
  'setpriv',
  `--reuid=${uid}`,
  `--regid=${gid}`,
  group === null ? '--clear-groups' : `--groups=${group}`,
  '--no-new-privs',
  '--inh-caps=-all',
  '--ambient-caps=-all',
  '--bounding-set=-all',
  '--',
  ...words,
]
