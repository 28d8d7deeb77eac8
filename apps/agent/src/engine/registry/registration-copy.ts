import { closeSync, fstatSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fault, HostId, InstanceId } from '@floe/domain'
import { replaceFile } from '@floe/host/replace-file'
import { z } from 'zod'
import { openOwnedFile } from '../../host/owned-files'
import { isThere } from '../../host/tree'
import { instanceLayout } from '../directory/layout'
import { RegisteredInstance } from './registered-instance'

/** What lies beside the data directory; the host in it distinguishes a directory that was carried here from another host. */
const Copy = z.object({ version: z.literal(1), hostId: HostId, instance: RegisteredInstance })

/** More a registration does not take. */
const COPY_MAX_BYTES = 64 * 1024

/**
 * A copy of each instance's registration in the directory of the instance, where it outlives the agent's own state. The
 * directory is root's own: the instance's superuser can neither write nor replace the copy. Without root both are one
 * user's, as everything else is.
 */
export class RegistrationCopies {
  readonly #instancesDirectory: string
  readonly #hostId: string

  constructor(o: { instancesDirectory: string; hostId: string }) {
    this.#instancesDirectory = o.instancesDirectory
    this.#hostId = o.hostId
  }

  /** Writes the copy. An instance whose directory is not made yet, or is gone, has none. */
  write(instance: RegisteredInstance): void {
    const path = this.#path(instance.instanceId)
    if (!isThere(dirname(path))) return
    replaceFile(path, `${JSON.stringify({ version: 1, hostId: this.#hostId, instance }, null, 2)}\n`)
  }

  /** Ids of the directories that hold a copy. */
  list(): InstanceId[] {
    if (!isThere(this.#instancesDirectory)) return []
    return readdirSync(this.#instancesDirectory).flatMap((name) => {
      const id = InstanceId.safeParse(name)
      return id.success && isThere(this.#path(id.data)) ? [id.data] : []
    })
  }

  /**
   * The registration of an instance as it was stored last; null when there is no copy. Throws for one that somebody else
   * could have written, that belongs to another host or instance, or whose data directory is not its user's.
   */
  read(instanceId: InstanceId): RegisteredInstance | null {
    const path = this.#path(instanceId)
    if (!isThere(path)) return null
    for (const directory of [this.#instancesDirectory, dirname(path)]) refuseForeign(directory)
    const text = readOwn(path)
    if (text === null) return null
    const copy = Copy.parse(JSON.parse(text))
    const { instance, hostId } = copy
    if (hostId !== this.#hostId) throw refused(path, `It belongs to host ${hostId}, this is ${this.#hostId}.`)
    if (instance.instanceId !== instanceId) throw refused(path, `It is instance ${instance.instanceId}'s.`)
    if (instance.expected === 'creating' || instance.expected === 'deleting')
      throw refused(
        path,
        `The instance was ${instance.expected === 'creating' ? 'being made' : 'being deleted'}.`,
      )
    const { dataDirectory } = instanceLayout(this.#instancesDirectory, instanceId)
    const data = lstatSync(dataDirectory, { throwIfNoEntry: false })
    if (!data?.isDirectory()) throw refused(path, `"${dataDirectory}" is not a directory.`)
    if (instance.user && data.uid !== instance.user.uid)
      throw refused(
        path,
        `The data directory belongs to uid ${data.uid}, the instance to ${instance.user.uid}.`,
      )
    return instance
  }

  #path(instanceId: string): string {
    return instanceLayout(this.#instancesDirectory, instanceId).registrationCopy
  }
}

const refused = (path: string, detail: string) =>
  fault('agent.registration_refused', `file "${path}" is not taken for a registration`, { detail })

/** A directory that others may write to could have been filled by them. */
function refuseForeign(directory: string): void {
  const stat = lstatSync(directory)
  if (!stat.isDirectory() || stat.uid !== process.getuid?.() || (stat.mode & 0o022) !== 0)
    throw refused(directory, 'Others than the agent can write to the directory.')
}

function readOwn(path: string): string | null {
  const fd = openOwnedFile(path)
  if (fd === null) return null
  try {
    const stat = fstatSync(fd)
    if (stat.uid !== process.getuid?.() || (stat.mode & 0o022) !== 0 || stat.nlink !== 1)
      throw refused(path, 'Others than the agent can write to the file.')
    if (stat.size > COPY_MAX_BYTES) throw refused(path, `It is longer than ${COPY_MAX_BYTES} bytes.`)
    return readFileSync(fd, 'utf8')
  } finally {
    closeSync(fd)
  }
}
