import { lstatSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { directoryNumber } from '@floe/host/process-facts'
import { statOwnedFile } from '../../host/owned-files'
import { type InstanceLayout, instanceLayout } from './layout'

/** Why a directory is not taken for an instance's. */
export class NotItsDirectory extends Error {
  readonly hint: string
  constructor(why: string, hint = 'Put the directory of the instance in its place, then try again.') {
    super(why)
    this.hint = hint
  }
}

/** Files that the engine itself writes and that only the owner of the directory can have. */
const OWNED_FILES = [['PG_VERSION'], ['global', 'pg_control']] as const

/**
 * The directory that an instance would have by this host's own layout, where one lies there that an agent could have made:
 * the names down to the data directory are ours to change and no links, and what is in it belongs to one user. Nobody says
 * where it lies, so that nobody can have another directory taken for it. Throws NotItsDirectory.
 */
export function findDirectory(
  instancesDirectory: string,
  instanceId: string,
): { layout: InstanceLayout; owner: { uid: number; gid: number } } {
  const layout = instanceLayout(instancesDirectory, instanceId)
  // it may lie on another disk, behind a link of ours
  refuseOthers(instancesDirectory, statSync(instancesDirectory, { throwIfNoEntry: false }))
  refuseOthers(layout.directory, lstatSync(layout.directory, { throwIfNoEntry: false }))
  const data = lstatSync(layout.dataDirectory, { throwIfNoEntry: false })
  if (!data?.isDirectory())
    throw new NotItsDirectory(
      data ? `"${layout.dataDirectory}" is not a directory.` : `"${layout.dataDirectory}" does not exist.`,
    )
  const { uid, gid } = data
  const log = lstatSync(layout.logDirectory, { throwIfNoEntry: false })
  if (log && !(log.isDirectory() && log.uid === uid))
    throw new NotItsDirectory(
      `"${layout.logDirectory}" is not a directory of the user that the data directory belongs to.`,
    )
  for (const parts of OWNED_FILES) {
    const path = join(layout.dataDirectory, ...parts)
    const file = ownedFile(path)
    if (file?.uid !== uid)
      throw new NotItsDirectory(
        file ? `"${path}" belongs to uid ${file.uid}, its directory to ${uid}.` : `"${path}" is not a file.`,
      )
  }
  return { layout, owner: { uid, gid } }
}

/** Whether two data directories are one, by whatever names. */
export const isSameDirectory = (a: InstanceLayout, b: InstanceLayout): boolean => {
  const number = directoryNumber(a.dataDirectory)
  return number !== null && number === directoryNumber(b.dataDirectory)
}

function ownedFile(path: string): Stats | null {
  try {
    return statOwnedFile(path)
  } catch {
    // a link, on the way or in its place
    return null
  }
}

/** What lies in a directory that others may write to could be theirs. */
function refuseOthers(path: string, stat: Stats | undefined): void {
  if (!stat?.isDirectory())
    throw new NotItsDirectory(stat ? `"${path}" is not a directory.` : `"${path}" does not exist.`)
  if (stat.uid !== process.getuid?.() || (stat.mode & 0o022) !== 0)
    throw new NotItsDirectory(
      `Others than the agent can write to "${path}".`,
      'Find out who made it. Give it back to the user of the agent, with mode 0711, only if nobody else has changed anything in it.',
    )
}
