import { chmodSync, lchownSync, lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { makeSharedDirectory } from '../host/durable-files'
import type { EngineUser } from '../host/engine-user'
import { shortIdOf } from '../host/instance-users'
import { isThere, removeTree } from '../host/tree'

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
  prepare(user: EngineUser): void {
    makeSharedDirectory(this.#shared)
    if (!isThere(this.directory)) mkdirSync(this.directory)
    // local clients pass through, whatever the agent's umask; nobody else can put something in its place
    if ((lstatSync(this.directory).mode & 0o777) !== 0o755) chmodSync(this.directory, 0o755)
    if (user.uid !== null && user.gid !== null && lstatSync(this.directory).uid !== user.uid)
      lchownSync(this.directory, user.uid, user.gid)
    const link = join(this.#shared, this.#name)
    const target = join(shortIdOfDirectory(this.directory), this.#name)
    if (isLinkTo(link, target)) return
    // a socket that an earlier version had there, and its lock
    for (const path of [link, `${link}.lock`]) rmSync(path, { force: true })
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

const shortIdOfDirectory = (directory: string): string => directory.slice(directory.lastIndexOf('/') + 1)

function isLinkTo(path: string, target: string): boolean {
  try {
    return readlinkSync(path) === target
  } catch {
    return false
  }
}
