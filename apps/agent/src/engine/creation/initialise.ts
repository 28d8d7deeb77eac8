import { readdirSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fault } from '@floe/domain'
import { syncDirectory } from '@floe/host/replace-file'
import { waitFor } from '@floe/host/wait'
import type { EngineUser } from '../../host/engine-user'
import { makeOwnedDirectory, readOwnedFile } from '../../host/owned-files'
import { endProcessesIn } from '../../host/process-table'
import { runCommand } from '../../host/run-command'
import { fillDirectory, isThere, removeTree } from '../../host/tree'
import { hostBasedAuthentication } from '../access/host-based-authentication'
import { newServerCertificate } from '../access/server-certificate'
import { dataFiles, type InstanceLayout } from '../directory/layout'
import { builtinExtensions } from '../libraries/builtin-modules'
import { managedFileText } from '../settings/managed-file'

export type InitialiseOptions = {
  /** The instance's, for its certificate. */
  name: string
  prefix: string
  layout: InstanceLayout
  user: EngineUser
  settings: ReadonlyMap<string, string>
  /** Verifiers of the passwords of the agent's role and, where a person has one, of `postgres`. */
  agentVerifier: string
  ownerVerifier: string | null
  signal: AbortSignal
  log: (text: string) => void
}

/**
 * Makes the data directory of a new instance. All work is done beside it and one rename makes it real, so a killed run
 * leaves nothing that a second run could mistake for an instance. Safe to run twice: an existing one is left alone.
 */
export async function initialiseDataDirectory(o: InitialiseOptions): Promise<void> {
  await removeUnfinished(o.layout, o.user)
  if (isThere(o.layout.dataDirectory)) return
  const unfinished = join(o.layout.directory, `pgdata.unfinished-${process.pid}-${Date.now()}`)
  makeOwnedDirectory(unfinished, o.user)
  try {
    await initdb(o, unfinished)
    await defineRoles(o, unfinished)
    fillDirectory(unfinished, await configurationOf(o, unfinished), o.user)
    o.log('syncing the data directory')
    await engineCommand(o, 'initdb', ['-D', unfinished, '--sync-only', '--sync-method=syncfs'])
    o.signal.throwIfAborted()
    renameSync(unfinished, o.layout.dataDirectory)
    syncDirectory(o.layout.directory)
  } catch (error) {
    await removeTree(unfinished, o.user)
    throw error
  }
}

/** Ends and removes what killed runs left behind. */
export async function removeUnfinished(layout: InstanceLayout, user: EngineUser): Promise<void> {
  if (!isThere(layout.directory)) return
  for (const entry of readdirSync(layout.directory)) {
    if (!entry.startsWith('pgdata.unfinished-')) continue
    const path = join(layout.directory, entry)
    // what still writes in there may bring something back between the look and the removal
    await waitFor(
      async () => {
        endProcessesIn(path)
        await removeTree(path, user).catch(() => {})
        return !isThere(path)
      },
      { boundMs: 10_000, everyMs: 20 },
    )
  }
}

async function initdb(o: InitialiseOptions, directory: string): Promise<void> {
  o.log('initialising the data directory')
  await engineCommand(o, 'initdb', [
    // a word of its own, so that a killed run's initdb is recognised by it
    '-D',
    directory,
    '--username=postgres',
    '--encoding=UTF8',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C.UTF-8',
    '--data-checksums',
    '--auth=trust',
    '--no-sync',
    '--no-instructions',
    '--set=lc_messages=C',
  ])
}

/** Texts of the files that decide how the instance runs, by name. */
async function configurationOf(o: InitialiseOptions, directory: string): Promise<Map<string, string>> {
  const files = dataFiles(directory)
  const sample = readOwnedFile(files.mainFile)
  if (sample === null) throw fault('instance.not_initialised', 'initdb left no configuration')
  const texts: [path: string, text: string][] = [
    [files.mainFile, mainConfiguration(settingLines(sample))],
    [files.hbaFile, hostBasedAuthentication],
    [files.managedFile, managedFileText(o.settings)],
    ...(await newServerCertificate(files, o.name)),
  ]
  return new Map(texts.map(([path, text]) => [basename(path), text]))
}

/** The lines of initdb's sample that set something, without comments. */
export function settingLines(sample: string): string[] {
  return sample
    .split('\n')
    .map((line) => line.replace(/\s*#.*$/, '').trim())
    .filter((line) => line !== '' && !/^(log_timezone|lc_messages)\b/.test(line))
}

function mainConfiguration(lines: string[]): string {
  return `# This file is yours: Floe wrote it once and never changes it.
# floe.conf, included below, holds what was set through Floe. Of two lines for the same setting the later one counts.

${lines.join('\n')}

include 'floe.conf'
`
}

/**
 * Roles and extensions, before anybody can connect: in single-user mode, from standard input, so that no verifier shows
 * in a command line or a log.
 */
async function defineRoles(o: InitialiseOptions, directory: string): Promise<void> {
  o.log('defining roles')
  const literal = (text: string) => `'${text.replaceAll("'", "''")}'`
  const statements = [
    `CREATE ROLE floe SUPERUSER LOGIN PASSWORD ${literal(o.agentVerifier)};`,
    `COMMENT ON ROLE floe IS 'Floe''s agent: telemetry and settings';`,
  ]
  if (o.ownerVerifier) statements.push(`ALTER ROLE postgres PASSWORD ${literal(o.ownerVerifier)};`)
  for (const extension of builtinExtensions(o.prefix)) statements.push(`CREATE EXTENSION ${extension};`)
  const r = await runCommand(
    join(o.prefix, 'bin', 'postgres'),
    [
      '--single',
      '-j',
      '-F',
      '-D',
      directory,
      '-c',
      'exit_on_error=on',
      '-c',
      'log_min_messages=fatal',
      'postgres',
    ],
    { user: o.user, input: `${statements.join('\n\n')}\n\n`, timeoutMs: 120_000, signal: o.signal },
  )
  o.signal.throwIfAborted()
  if (r.status !== 0)
    throw fault('instance.not_initialised', 'could not define the roles of the instance', {
      detail: r.stderr.trim(),
    })
}

async function engineCommand(o: InitialiseOptions, name: string, args: string[]): Promise<void> {
  const r = await runCommand(join(o.prefix, 'bin', name), args, {
    user: o.user,
    timeoutMs: 300_000,
    signal: o.signal,
  })
  o.signal.throwIfAborted()
  if (r.status !== 0)
    throw fault('instance.not_initialised', `${name} could not initialise the data directory`, {
      detail: (r.stderr || r.stdout).trim() || `It ended with status ${r.status ?? r.signal}.`,
    })
}
