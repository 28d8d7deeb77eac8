import { FaultError, fault, type Setting, type SettingChange, toFault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import type { Instance } from '../instance'
import { sqlState } from '../process/connection'
import { reload } from '../process/reload'
import fileSettingsSql from '../sql/file-settings.sql'
import { readSettings } from './catalogue'

type InForce = Map<string, Setting>

/**
 * Makes the engine read its files and asks a connection that was opened after that what is in force. Throws
 * `setting.locks_out` where none can be opened any more, and what `read` throws.
 */
export async function takeIntoForce(
  instance: Instance,
  client: pg.Client,
  read: (fresh: pg.Client) => Promise<InForce>,
): Promise<InForce> {
  await reload(instance, client)
  let refusal: unknown
  const seen = await waitFor(
    async () => {
      try {
        return await instance.connectPlainly(read)
      } catch (error) {
        if (error instanceof FaultError && error.fault.code !== 'instance.no_connection') throw error
        refusal = error
        // no connection left says nothing about the settings yet: one may end
        if (sqlState((error as Error).cause) === TOO_MANY_CONNECTIONS) return null
        throw lockedOut(error)
      }
    },
    { boundMs: 5_000, everyMs: 100 },
  )
  if (seen === null) throw lockedOut(refusal)
  return seen
}

const TOO_MANY_CONNECTIONS = '53300'

function lockedOut(error: unknown): Error {
  return fault('setting.locks_out', 'no new connection could be opened after the change', {
    detail: toFault(error).detail ?? toFault(error).message,
    hint: 'The former settings were restored.',
    cause: error,
  })
}

/** The engine must have taken the lines of the managed file, or keep them for its restart. */
export async function readBack(
  client: pg.Client,
  instance: Instance,
  changes: readonly SettingChange[],
): Promise<InForce> {
  const { managedFile } = instance.layout
  const names = changes.filter((c) => c.value !== null).map((c) => c.name.toLowerCase())
  const lines = await client.query<{
    name: string
    sourceFile: string
    sourceLine: number
    applied: boolean
    error: string | null
  }>(fileSettingsSql, [names])
  const settings = await readSettings(
    client,
    instance.layout,
    changes.map((c) => c.name),
  )
  for (const name of names) {
    const own = lines.rows.find((l) => l.name === name && l.sourceFile === managedFile)
    const winner = lines.rows.find((l) => l.name === name && l.sourceFile !== managedFile && l.applied)
    const setting = settings.get(name)
    if (setting?.pendingRestart) continue
    // a new session that still begins with the engine's own value has refused the line; of what a start decides, the same
    // value leaves its source as it was
    if (own?.applied && (setting?.source !== 'default' || setting.context === 'postmaster')) continue
    throw fault('setting.not_applied', `the engine did not take setting "${name}"`, {
      detail: winner
        ? `Line ${winner.sourceLine} of file "${winner.sourceFile}" wins over it.`
        : (own?.error ?? 'It did not read the line.'),
    })
  }
  return settings
}

/** Where somebody else's lines may win, the engine must at least have found no error in those of these settings. */
export async function readWithoutError(
  client: pg.Client,
  instance: Instance,
  names: readonly string[],
): Promise<InForce> {
  const settings = await readSettings(client, instance.layout, names)
  const wrong = [...settings.values()].find((s) => s.fileError !== null)
  if (wrong)
    throw fault('setting.not_applied', `the engine did not take setting "${wrong.name}"`, {
      detail: wrong.fileError ?? '',
    })
  return settings
}

/**
 * Undoes a change that failed. `write` answers whether it had anything to write; the engine is ordered to read it then. What cannot be
 * rolled back is said, and the first error stays the reason.
 */
export function putBack(instance: Instance, write: () => boolean, log: (text: string) => void): void {
  try {
    if (!write()) return
    if (instance.postmaster) process.kill(instance.postmaster.pid, 'SIGHUP')
    log('put the former settings back')
  } catch (error) {
    log(`could not put the former settings back: ${toFault(error).detail ?? toFault(error).message}`)
  }
}
