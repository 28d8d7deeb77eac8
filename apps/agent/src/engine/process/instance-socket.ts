import { chmodSync, lchownSync, lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { EngineUser } from '../../host/engine-user'
import { shortIdOf } from '../../host/instance-users'
import { makeSharedDirectory } from '../../host/owned-files'
import { isThere, removeTree } from '../../host/tree'

/**
 * Where an instance's Unix socket lies: in a directory that only its user can write, below one that only root can. What
 * `psql -h` is told is the latter: a link there leads on, so that strings hold over a change of user.
 */
export class InstanceSocket {
  readonly #shared: string
  /** The instance's own, for `unix_socket_directories`. */
  readonly directory: string
  readonly #name: string

  constructor(shared: string, instance: { instanceId: string; port: number }) {
    this.#shared = shared
    this.directory = join(shared, shortIdOf(instance.instanceId))
    this.#name = `.s.PGSQL.${instance.port}`
  }

  /** Before each start. */
  async prepare(user: EngineUser): Promise<void> {
    makeSharedDirectory(this.#shared)
    await dropForeign(this.directory, user)
    if (!isThere(this.directory)) mkdirSync(this.directory)
    // local clients pass through, whatever the agent's umask; nobody else can put something in its place
    if ((lstatSync(this.directory).mode & 0o777) !== 0o755) chmodSync(this.directory, 0o755)
    if (user.uid !== null && user.gid !== null && lstatSync(this.directory).uid !== user.uid)
      lchownSync(this.directory, user.uid, user.gid)
    const link = join(this.#shared, this.#name)
    const target = join(shortIdOfDirectory(this.directory), this.#name)
    if (isLinkTo(link, target)) return
    // a socket that an earlier version had there, and its lock
    for (const path of [link, `${link}.lock`]) await dropAll(path)
    symlinkSync(target, link)
  }

  async remove(user: EngineUser): Promise<void> {
    const link = join(this.#shared, this.#name)
    const target = join(shortIdOfDirectory(this.directory), this.#name)
    // another instance may have the port by now
    if (isLinkTo(link, target)) rmSync(link)
    await removeTree(this.directory, user)
  }
}

/**
 * An earlier version's engines could put anything under any name of the directory around: a link in this one's place would
 * lead root elsewhere, and a directory would not be the instance's own.
 */
async function dropForeign(path: string, user: EngineUser): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  const own = [process.getuid?.(), user.uid ?? process.getuid?.()]
  if (found && !(found.isDirectory() && own.includes(found.uid))) await dropAll(path)
}

/** Removes whatever has a name in a directory of root's own: a tree with its owner's file access. */
async function dropAll(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found?.isDirectory()) return rmSync(path, { force: true })
  const self = found.uid === process.getuid?.()
  await removeTree(path, {
    name: String(found.uid),
    uid: self ? null : found.uid,
    gid: self ? null : found.gid,
  })
}

const shortIdOfDirectory = (directory: string): string => directory.slice(directory.lastIndexOf('/') + 1)

function isLinkTo(path: string, target: string): boolean {
  try {
    return readlinkSync(path) === target
  } catch {
    return false
  }
}
