import { isIP } from 'node:net'
import { userInfo } from 'node:os'
import { basename } from 'node:path'
import type { Upstream } from '@floe/agent-contract'
import { AGENT_ROLE, MemberLogin, purposeOf } from '@floe/domain'
import { removeFile, replaceFile } from '@floe/host/replace-file'
import { z } from 'zod'
import type { EngineUser } from '../../host/engine-user'
import { readOwnedFile } from '../../host/owned-files'
import { isThere, removeInTree, replaceInTree } from '../../host/tree'
import { memberTls } from '../access/server-certificate'
import type { InstanceLayout } from '../directory/layout'
import { completeManagedFile, formatClusterConfiguration, parseConfiguration } from '../settings/managed-file'

/**
 * Fencing. The invariant: from the moment a member is informed that it is not the primary any more, and until it has been
 * rejoined, nothing that can start it yields a primary.
 *
 * - `standby.signal` lies in its data directory, durably, before the engine is stopped: an engine that finds it comes up
 *   as a standby and accepts no write, no matter what starts it (agent, pg_ctl, systemd, a person).
 * - `fenced.json` lies in its directory: the agent starts it by no path at all until it is rejoined.
 * - Both are written before the stop is ordered, and the task has succeeded only once the process has ended. A promotion
 *   elsewhere begins only after that (or after a person has said, by typing it, that the host is out of reach).
 * - A data directory that is being rewound has another name until it is a standby's again.
 */
const Fence = z.object({ at: z.number(), reason: z.string() })
export type Fence = z.infer<typeof Fence>

/** Why the instance must not start as a primary, or null. A file that cannot be read counts as a fence. */
export function readFence(layout: InstanceLayout): Fence | null {
  let text: string | null
  try {
    text = readOwnedFile(layout.fenceFile)
    if (text === null) return null
    return Fence.parse(JSON.parse(text))
  } catch {
    return { at: 0, reason: `file "${layout.fenceFile}" cannot be read` }
  }
}

/** Keeps an instance from ever being a primary: see above. Safe to run twice; an earlier reason stays. */
export function writeFence(layout: InstanceLayout, reason: string, user: EngineUser): Fence {
  const fence = readFence(layout) ?? { at: Date.now(), reason }
  replaceFile(layout.fenceFile, `${JSON.stringify(fence)}\n`)
  writeStandbySignal(layout, user)
  return fence
}

export function clearFence(layout: InstanceLayout): void {
  removeFile(layout.fenceFile)
}

export function writeStandbySignal(layout: InstanceLayout, user: EngineUser): void {
  if (isThere(layout.dataDirectory) && !isThere(layout.standbySignal))
    replaceInTree(layout.standbySignal, '', user)
}

/** Only for taking a demotion back: from then on the engine starts as a primary. */
export function removeStandbySignal(layout: Pick<InstanceLayout, 'standbySignal'>, user: EngineUser): void {
  removeInTree(layout.standbySignal, user)
}

export function readClusterSettings(layout: InstanceLayout): Map<string, string> {
  return parseConfiguration(readOwnedFile(layout.clusterFile) ?? '')
}

/** Writes what the cluster asks for, and sees to it that the managed file includes it. */
export function writeClusterSettings(
  layout: InstanceLayout,
  settings: ReadonlyMap<string, string>,
  user: EngineUser,
): void {
  replaceInTree(layout.clusterFile, formatClusterConfiguration(settings), user)
  completeManagedFile(layout.managedFile, user)
}

const conninfoValue = (value: string) => `'${value.replace(/[\\']/g, (c) => `\\${c}`)}'`

/** Who asks another member, with which password, and by which means it knows that it is one. */
type Asking = { name: string; passFile: string; noRootFile: string }

/** How a member reaches its upstream; the password stands in a file of its own. */
export function upstreamConninfo(upstream: Upstream, own: Asking, more: Record<string, string> = {}): string {
  const parts: Record<string, string> = {
    host: upstream.host,
    port: String(upstream.port),
    user: upstream.role,
    passfile: own.passFile,
    application_name: own.name,
    connect_timeout: '5',
    keepalives_idle: '5',
    keepalives_interval: '2',
    keepalives_count: '3',
    ...memberTls(own),
    ...more,
  }
  return Object.entries(parts)
    .map(([name, value]) => `${name}=${conninfoValue(value)}`)
    .join(' ')
}

/** Short while a primary is demoted: its stop waits for receivers of WAL, and clients for its stop. */
export const SENDER_TIMEOUT = 'wal_sender_timeout'

/** What a standby of this upstream asks for. */
export function standbySettings(
  upstream: Upstream | null,
  own: Asking,
  before: ReadonlyMap<string, string> = new Map(),
): Map<string, string> {
  const settings = new Map(before)
  settings.delete(SENDER_TIMEOUT)
  settings.set('primary_conninfo', upstream ? upstreamConninfo(upstream, own) : '')
  settings.set('primary_slot_name', upstream?.slot ?? '')
  // the default of 5 s would be most of the time that clients wait after a switchover
  settings.set('wal_retrieve_retry_interval', '500ms')
  return settings
}

/**
 * Writes the file that libpq reads the password from; of the engine's user alone. Each role has a line: the one of before
 * is used until the member has been ordered to come as the new one.
 */
export function writePassFile(
  layout: InstanceLayout,
  roles: readonly string[],
  password: string,
  user: EngineUser,
): void {
  replaceFile(layout.passFile, passLines('*', roles, password), { giveTo: user })
}

/** The same for the password that a member asks others for pages with. */
export function writeRepairPassFile(
  layout: InstanceLayout,
  roles: readonly string[],
  password: string,
  user: EngineUser,
): void {
  replaceFile(layout.repairPassFile, passLines('postgres', roles, password), { giveTo: user })
}

const passLines = (database: string, roles: readonly string[], password: string) =>
  roles.map((role) => `*:*:${database}:${role}:${password}\n`).join('')

/** As the agent makes its passwords: 24 bytes in base64url. */
const PASSWORD = /^[A-Za-z0-9_-]{32}$/

/**
 * The password of a role in a file for libpq; null where it has none there. The instance's user can write the file: what
 * stands there is known to its superuser, and opens nothing that it could not open before.
 */
export function readPassword(path: string, role: string): string | null {
  let text: string | null
  try {
    text = readOwnedFile(path)
  } catch {
    // something else lies in its place
    return null
  }
  const words = text
    ?.split('\n')
    .map((line) => line.split(':'))
    .find((parts) => parts.length === 5 && parts[3] === role)
  return words?.[4] !== undefined && PASSWORD.test(words[4]) ? words[4] : null
}

/** How a member asks another one for pages; the password stands in a file of its own. */
export function repairConninfo(
  source: { host: string; port: number },
  own: Asking & { role: string },
): string {
  const parts: Record<string, string> = {
    host: source.host,
    // no resolver is asked where none is needed; whoever recovers would wait for it
    ...(isIP(source.host) ? { hostaddr: source.host } : {}),
    port: String(source.port),
    dbname: 'postgres',
    user: own.role,
    passfile: own.passFile,
    application_name: `${own.name} page repair`,
    connect_timeout: '5',
    keepalives_idle: '5',
    keepalives_interval: '2',
    keepalives_count: '3',
    ...memberTls(own),
  }
  return Object.entries(parts)
    .map(([name, value]) => `${name}=${conninfoValue(value)}`)
    .join(' ')
}

/**
 * Lines for the members' roles: replication, and the connection that pg_rewind reads through; for those that ask for
 * pages, the one database they ask in. Over TLS only: who carries a connection on without would be past the channel
 * binding. The first line lets each host's own agent in by who its process is: role `floe` is
 * copied with its password, which other hosts do not know.
 *
 * The roles are those of the cluster's members as the controller knows them, never what a catalog or a file of the
 * instance says; each is checked once more and quoted, so that no name is read as a keyword or as another line.
 */
export function formatClusterHba(roles: readonly string[]): string {
  const lines = [...new Set(roles)]
    .sort()
    .map((role) => MemberLogin.parse(role))
    .flatMap((role) => [
      ...(purposeOf(role) === 'repair' ? [] : [`hostssl    replication      "${role}"  all  scram-sha-256`]),
      `hostssl    "postgres"       "${role}"  all  scram-sha-256`,
    ])
  return `# Written by Floe and replaced when the cluster's members change: what agents and standbys come in by. Do not edit.
local      all              "${AGENT_ROLE}"  peer map=floe
${lines.join('\n')}
hostnossl  all,replication  "/^floe_(standby|repair)_"  all  reject
`
}

/** Writes the members' lines and sees to it that pg_hba.conf begins with them. Answers whether anything changed. */
export function writeClusterHba(layout: InstanceLayout, roles: readonly string[], user: EngineUser): boolean {
  const ident = writeIdent(layout, user)
  const hba = replaceIncluded(
    { main: layout.hbaFile, included: layout.clusterHbaFile, text: formatClusterHba(roles) },
    user,
  )
  return ident || hba
}

/** Whose processes are this host's agent; other hosts may run theirs as another user. */
export function writeIdent(
  layout: Pick<InstanceLayout, 'identFile' | 'clusterIdentFile'>,
  user: EngineUser,
): boolean {
  const text = `# Written by Floe: the user that the agent of this host runs as. Do not edit.\nfloe  ${JSON.stringify(userInfo().username)}  ${AGENT_ROLE}\n`
  return replaceIncluded({ main: layout.identFile, included: layout.clusterIdentFile, text }, user)
}

/** Replaces a file of ours and has the person's file begin with it. */
function replaceIncluded(file: { main: string; included: string; text: string }, user: EngineUser): boolean {
  const name = basename(file.included)
  const main = readOwnedFile(file.main) ?? ''
  const included = main.split('\n').includes(`include_if_exists ${name}`)
  if (included && readOwnedFile(file.included) === file.text) return false
  replaceInTree(file.included, file.text, user)
  if (!included)
    replaceInTree(
      file.main,
      `# Floe's lines for the members of the cluster\ninclude_if_exists ${name}\n\n${main}`,
      user,
    )
  return true
}
