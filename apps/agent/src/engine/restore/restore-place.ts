import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type { EngineUser } from '../../host/engine-user'
import { makeOwnedDirectory } from '../../host/owned-files'
import { endProcessesIn } from '../../host/process-table'
import { isThere, removeTree } from '../../host/tree'
import { isRestorePlace, RESTORE_PLACE } from '../directory/layout'

/** Where one backup is restored: a directory of the instance's user inside root's own, and one for the engine's socket. */
export type RestorePlace = { directory: string; dataDirectory: string; socketDirectory: string }

/** What still writes in there may bring something back between the look and the removal. */
const REMOVE_BOUND_MS = 60_000

export function makeRestorePlace(outer: string, sockets: string, user: EngineUser): RestorePlace {
  const name = `${RESTORE_PLACE}${randomBytes(6).toString('hex')}`
  const directory = join(outer, name)
  const socketDirectory = join(sockets, name)
  makeOwnedDirectory(directory, user)
  makeOwnedDirectory(socketDirectory, user)
  return { directory, dataDirectory: join(directory, 'pgdata'), socketDirectory }
}

/** Those that an instance has: of a restore that runs, or left by one that was killed. */
export const restorePlacesIn = (outer: string): string[] =>
  isThere(outer) ? readdirSync(outer).filter(isRestorePlace) : []

/** Two that remove the same one wait for the same removal. */
const removing = new Map<string, Promise<void>>()

/** Ends what runs in such directories of an instance and removes them, with their sockets. Missing ones are fine. */
export async function removeRestorePlaces(
  outer: string,
  sockets: string,
  user: EngineUser,
  names: readonly string[],
): Promise<void> {
  for (const name of names) {
    const directory = join(outer, name)
    const work =
      removing.get(directory) ??
      removeOne(directory, join(sockets, name), user).finally(() => removing.delete(directory))
    removing.set(directory, work)
    await work
  }
}

/** The directory of the instance goes last: by it a run after a kill knows of the other one. */
async function removeOne(directory: string, socketDirectory: string, user: EngineUser): Promise<void> {
  let last: unknown
  const gone = await waitFor(
    async () => {
      endProcessesIn(directory)
      try {
        await removeTree(socketDirectory, user)
        await removeTree(directory, user)
      } catch (error) {
        last = error
      }
      return !isThere(directory)
    },
    { boundMs: REMOVE_BOUND_MS, everyMs: 50 },
  )
  if (!gone)
    throw fault('restore.not_removed', `"${directory}" of a restored backup could not be removed`, {
      detail: last instanceof Error ? last.message : 'A process works in it.',
      hint: 'The agent tries again at its next start.',
      cause: last,
    })
}
