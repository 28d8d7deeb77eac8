import { join } from 'node:path'
import {
  type CheckedSetting,
  FaultError,
  fault,
  isStandbySensitive,
  reservedSettingFault,
  type Setting,
  type SettingChange,
  type StandbySensitiveSetting,
  settingImpact,
  toFault,
} from '@floe/domain'
import type pg from 'pg'
import type { EngineUser } from '../../host/engine-user'
import { runCommand } from '../../host/run-command'
import { isThere } from '../../host/tree'
import { readControlFile } from '../directory/control-file'
import type { InstanceLayout } from '../directory/layout'
import { refuseForeignLibraries } from '../libraries/engine-libraries'
import { readProtection } from '../page-repair/protection'
import { unprotectedFault } from '../page-repair/refuse-unprotected'
import fileSettingsSql from '../sql/file-settings.sql'
import { readSettings } from './catalogue'
import { applyChanges, quoteValue, readManagedSettings } from './managed-file'
import { SHARED_SERVER_SWITCH, warnOfPinning } from './pinning-libraries'
import { refuseSharedPort } from './shared-port'
import { reasonOf, type TrialPlace, type TrialResult, tryConfiguration } from './trial'

export type CheckTarget = {
  prefix: string
  /** Null where there is no instance yet: then `managed` is what a new one begins with. */
  layout: InstanceLayout | null
  /** The instance's own port; null where it has none yet. */
  port: number | null
  managed?: ReadonlyMap<string, string> | undefined
  user: EngineUser
  /** Where a start is tried. */
  trial: TrialPlace
  /** Null when the instance is not running: then the binary alone is asked. */
  client: pg.Client | null
  /** Aborted when nobody waits for the answer any more. */
  signal?: AbortSignal | undefined
  /** The primary takes the changes first: what its WAL asks of a standby now is not held against them. */
  acrossCluster?: boolean | undefined
}

/**
 * What changes would do, decided by the instance's own binary, with nothing changed: the name exists, nobody else sets
 * it, the value is accepted, and the engine would start with all of them together.
 */
export async function checkSettings(
  target: CheckTarget,
  changes: readonly SettingChange[],
): Promise<CheckedSetting[]> {
  const names = changes.map((c) => c.name.toLowerCase())
  const known =
    target.client && target.layout ? await readSettings(target.client, target.layout, names) : null
  const managed = managedBy(target)
  const results: CheckedSetting[] = []
  for (const change of changes) {
    target.signal?.throwIfAborted()
    const setting = known?.get(change.name.toLowerCase())
    const result: CheckedSetting = {
      name: setting?.name ?? change.name,
      oldValue: oldValueOf(setting, managed.get(change.name.toLowerCase())),
      newValue: change.value,
      impact: setting ? settingImpact(setting.context) : 'restart',
      fault: null,
      oldNumber: setting && isStandbySensitive(setting.name) ? Number(setting.value) : null,
      newNumber: null,
    }
    results.push(result)
    try {
      if (names.indexOf(change.name.toLowerCase()) !== results.length - 1)
        throw fault('setting.named_twice', `setting "${change.name}" is named twice`)
      // a line from before it was reserved may go
      if (change.value !== null) {
        refuseReserved(change.name)
        refuseForeignLibraries(target.prefix, change.name, change.value)
      }
      // a setting of a library that only the next start loads is left to the trial
      if (known && !setting && !change.name.includes('.')) throw unknownSetting(change.name)
      if (setting?.context === 'internal')
        throw fault('setting.read_only', `setting "${setting.name}" cannot be changed`, {
          detail: 'Its value is fixed when the engine is built or the data directory is made.',
        })
      if (target.client && target.layout && setting)
        await refuseOverridden(target.client, setting, target.layout)
      if (change.value !== null) {
        await tryValue(target, setting, change.name, change.value)
        if (change.name.toLowerCase() === 'polar_ss_port')
          await refuseSharedPort(change.value, { ownPort: target.port, inForce: setting?.value ?? null })
      }
    } catch (error) {
      target.signal?.throwIfAborted()
      result.fault = toFault(error)
    }
  }
  await refuseUnprotected(target, known, changes, results)
  if (results.every((r) => r.fault === null) && needsTrial(known, names))
    await tryTogether(target, changes, results)
  if (!target.acrossCluster) await refuseBelowPrimary(target, results)
  return results
}

function oldValueOf(setting: Setting | undefined, managed: string | undefined): string | null {
  const waiting = setting?.pendingRestart ? managed : undefined
  return waiting ?? setting?.shown ?? managed ?? null
}

const managedBy = ({ layout, managed }: CheckTarget): ReadonlyMap<string, string> =>
  layout ? readManagedSettings(layout.managedFile) : (managed ?? new Map())

/**
 * A standby that has such a setting smaller than its primary stops replaying, and does not start. What its primary asks for
 * stands in its control file.
 */
async function refuseBelowPrimary(t: CheckTarget, results: readonly CheckedSetting[]): Promise<void> {
  const lowered = results.filter((r) => r.newNumber !== null)
  if (lowered.length === 0 || !t.layout || !isThere(t.layout.standbySignal)) return
  const control = await readControlFile(t.prefix, t.layout.dataDirectory, t.user)
  for (const result of lowered) {
    const asked = control?.asked[result.name.toLowerCase() as StandbySensitiveSetting] ?? 0
    if (result.newNumber === null || result.newNumber >= asked) continue
    result.fault = {
      code: 'setting.below_primary',
      message: `setting "${result.name}" of a standby cannot be smaller than its primary’s`,
      detail: `It would be ${result.newNumber}; the primary’s WAL requires ${asked}. The standby would not start.`,
      hint: 'Change it on the whole cluster: the primary takes a smaller value first.',
    }
  }
}

/** Full-page writes stay on where no source could give a torn page back; the guard's own setting is the one override. */
async function refuseUnprotected(
  { client }: CheckTarget,
  known: Map<string, Setting> | null,
  changes: readonly SettingChange[],
  results: readonly CheckedSetting[],
): Promise<void> {
  const result = results.find((r) => r.name.toLowerCase() === 'full_page_writes')
  if (!result || result.fault) return
  // what this change does not name has not been read yet
  const others = client
    ? await client.query<{ guard: string | null; policy: string | null; checksums: string }>(
        `select current_setting('polar_page_repair_guard', true) as guard,
                current_setting('polar_page_repair_policy', true) as policy,
                current_setting('data_checksums') as checksums`,
      )
    : null
  result.fault = unprotectedFault(changes, {
    running:
      others && known
        ? {
            fullPageWrites: known.get('full_page_writes')?.shown ?? null,
            guard: others.rows[0]?.guard ?? null,
            policy: others.rows[0]?.policy ?? null,
            dataChecksums: others.rows[0]?.checksums === 'on',
          }
        : null,
    protection: client ? await readProtection(async (sql) => (await client.query(sql)).rows) : null,
  })
}

function refuseReserved(name: string): void {
  const reserved = reservedSettingFault(name)
  if (reserved) throw new FaultError(reserved)
}

export function unknownSetting(name: string): Error {
  return fault('setting.unknown', `setting "${name}" does not exist`, {
    detail: 'The instance’s own engine does not know it.',
    hint: 'See the list of all settings.',
  })
}

/** A change would have no effect where a stronger source sets the value; saying so beats a silent success. */
async function refuseOverridden(client: pg.Client, setting: Setting, layout: InstanceLayout): Promise<void> {
  if (setting.source === 'command line' || setting.source === 'environment variable')
    throw fault('setting.overridden', `setting "${setting.name}" is set elsewhere`, {
      detail: `Its value comes from: ${setting.source}.`,
    })
  const lines = await client.query<{ sourceFile: string; sourceLine: number }>(fileSettingsSql, [
    [setting.name.toLowerCase()],
  ])
  const last = lines.rows[0]
  const floe = lines.rows.findIndex((l) => l.sourceFile === layout.managedFile)
  if (!last || floe === 0 || last.sourceFile === layout.managedFile) return
  // initdb's lines of postgresql.conf stand before floe.conf; whatever comes after it wins over it
  if (last.sourceFile === layout.autoFile)
    throw fault('setting.overridden', `setting "${setting.name}" is set by ALTER SYSTEM`, {
      detail: 'postgresql.auto.conf wins over every other file.',
      hint: `Run ALTER SYSTEM RESET ${setting.name} first.`,
    })
  if (floe > 0)
    throw fault('setting.overridden', `setting "${setting.name}" is set again after floe.conf`, {
      detail: `Line ${last.sourceLine} of file "${last.sourceFile}" sets it.`,
      hint: 'Remove that line, or put it before the include of floe.conf.',
    })
}

/** Parsing, range and the setting's own check, by the binary; for settings of modules and of a session, in the session. */
async function tryValue(
  t: CheckTarget,
  setting: Setting | undefined,
  name: string,
  value: string,
): Promise<void> {
  quoteValue(value)
  const where = t.layout ? ['-D', t.layout.dataDirectory] : ['-D', '/', '-c', 'config_file=/dev/null']
  const r = await runCommand(
    join(t.prefix, 'bin', 'postgres'),
    ['-C', name, ...where, '-c', `${name}=${value}`, '-c', 'log_min_messages=fatal'],
    { user: t.user, timeoutMs: 10_000, signal: t.signal },
  )
  if (r.status !== 0) {
    const reason = reasonOf(r.stderr)
    if (/unrecognized configuration parameter/.test(reason)) throw unknownSetting(name)
    // with a runtime-computed setting a running instance holds the lock; then the value was accepted before that
    if (!/lock file "postmaster\.pid" already exists/.test(r.stderr)) throw refusedValue(name, value, reason)
  }
  if (t.client && setting && (setting.context === 'user' || setting.context === 'superuser')) {
    try {
      await t.client.query('begin')
      await t.client.query('select set_config($1, $2, true)', [setting.name, value])
    } catch (error) {
      throw refusedValue(
        name,
        value,
        [(error as Error).message, (error as { hint?: string }).hint].filter(Boolean).join(': '),
      )
    } finally {
      await t.client.query('rollback')
    }
  }
}

function refusedValue(name: string, value: string, reason: string): Error {
  return fault('setting.invalid_value', `setting "${name}" does not accept the value "${value}"`, {
    detail: reason || 'The engine refused it.',
  })
}

/** Read at a reload and at a start alike, and wrong only where the parser says so: no start has to be tried for them. */
const parsedOnly = /^(full_page_writes|fsync|checkpoint_|bgwriter_|wal_writer_|autovacuum)/

/** Read by every new connection: a wrong one would lock everybody out, the agent too. */
const everyConnection = /(_preload_libraries|_auth_delay)$|^dynamic_library_path$/

/**
 * A start is tried where a change takes a restart, where a reload would not show what the next start runs into (files,
 * contradictions, modules), and where nobody can tell.
 */
function needsTrial(known: Map<string, Setting> | null, names: readonly string[]): boolean {
  if (known === null) return true
  return names.some((n) => {
    const s = known.get(n)
    if (!s || s.context === 'postmaster' || everyConnection.test(n)) return true
    return s.context === 'sighup' && (s.category === 'Customized Options' || !parsedOnly.test(n))
  })
}

async function tryTogether(
  t: CheckTarget,
  changes: readonly SettingChange[],
  results: CheckedSetting[],
): Promise<void> {
  const managed = applyChanges(managedBy(t), changes)
  const trial: TrialResult = await tryConfiguration({
    prefix: t.prefix,
    files: t.layout,
    user: t.user,
    place: t.trial,
    managed,
    names: [...results.map((r) => r.name), SHARED_SERVER_SWITCH],
    signal: t.signal,
  })
  for (const [i, result] of results.entries()) {
    const change = changes[i] as SettingChange
    if (!trial.starts)
      result.fault = {
        code: 'setting.would_not_start',
        message: 'the engine would not start with this setting',
        detail: trial.reason,
      }
    else {
      const seen = trial.settings.find((s) => s.name === result.name.toLowerCase())
      if (seen && isStandbySensitive(result.name)) result.newNumber = Number(seen.value)
      if (change.value === null) continue
      if (!seen) result.fault = toFault(unknownSetting(change.name))
      else if (seen.source !== 'configuration file' && seen.source !== 'command line')
        result.fault = toFault(
          refusedValue(change.name, change.value, 'The engine kept its own value when it was started.'),
        )
    }
  }
  warnOfPinning(results, trial)
}
