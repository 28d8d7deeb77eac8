import { FaultError, fault } from '@floe/domain'
import type { Command } from 'commander'
import type { BackupResult } from '../backup/make-backup'
import {
  currentHome,
  type Home,
  isInstallation,
  newInstallationId,
  readConfiguration,
  readInstallation,
  requireInstallation,
} from '../installation/home'
import { moment, printResult } from '../output'
import { liveRecord, programNames, runningProgram } from '../process/records'
import { holdUpLock } from '../up/lock'
import type { UpResult } from '../up/up'
import { openConsole } from './find-instance'
import { progressOf } from './up'
import { verb } from './verb'

type Verb = { json?: boolean }

export function addConsole(program: Command): void {
  const console = program
    .command('console')
    .summary('back up and restore the console itself')
    .description(
      'The console’s own control database, configuration and secrets. Instances and their data are not part of it.',
    )

  verb(
    console,
    'backup <file>',
    'back up the control database, the configuration and the secrets into one encrypted file',
    `Writes one new file, readable by its owner alone, that is encrypted with a passphrase (the format of age: "age -d FILE | tar -t"
lists it). It holds the key of the installation’s authority: anybody who can decrypt it can act as this console. Samples are omitted unless --samples is given; instances and their data are never part of it.`,
  )
    .option('--passphrase-file <file>', 'file with the passphrase; "-" reads it from standard input')
    .option('--samples', 'include the samples of charts, which may be gigabytes')
    .action(
      async (
        file: string,
        { json, passphraseFile, samples }: Verb & { passphraseFile?: string; samples?: boolean },
      ) => {
        const [{ makeBackup }, { readPassphrase }] = await Promise.all([
          import('../backup/make-backup'),
          import('../backup/passphrase'),
        ])
        const home = currentHome()
        const installation = requireInstallation(home)
        const passphrase = await readPassphrase(passphraseFile, 'new')
        const { progress } = progressOf('backup')
        const lock = await holdUpLock(home, progress)
        try {
          const made: BackupResult = await makeBackup(home, installation, {
            file,
            passphrase,
            samples: samples ?? false,
          })
          printResult(json, made, () =>
            [
              `${made.file}: ${made.bytes} bytes${made.samples ? '' : ', without samples'}.`,
              'Store the passphrase separately: without it the backup cannot be restored.',
            ].join('\n'),
          )
        } finally {
          await lock.release()
        }
      },
    )

  verb(
    console,
    'restore <file>',
    'restore a backup of the console, and start it',
    `Restores what "console backup" wrote, on a fresh machine or where the console is stopped, and starts it. The file is decrypted
and verified as a whole before anything is changed. The console is then read-only: nothing is fenced, promoted, demoted or deleted, and no open operation continues, until an admin or owner has decided with "console accept-restored". All users have to sign in again. The former content is kept in a separate database until the next restore. If the restore is interrupted, run it or "./floe up" again.`,
  )
    .option('--passphrase-file <file>', 'file with the passphrase; "-" reads it from standard input')
    .option('--replace', 'replace the existing installation, which has to be the same one')
    .action(
      async (
        file: string,
        { json, passphraseFile, replace }: Verb & { passphraseFile?: string; replace?: boolean },
      ) => {
        const [{ up }, { stageRestore }, { readPassphrase }] = await Promise.all([
          import('../up/up'),
          import('../backup/pending-restore'),
          import('../backup/passphrase'),
        ])
        const home = currentHome()
        requireReplaceable(home, replace ?? false)
        const passphrase = await readPassphrase(passphraseFile, 'known')
        const { progress, log } = progressOf('restore')
        const lock = await holdUpLock(home, progress)
        try {
          requireReplaceable(home, replace ?? false)
          const { manifest } = await stageRestore(home, file, passphrase, ({ installationId }) =>
            requireSame(home, installationId),
          )
          const result: UpResult = await up(home, {}, {}, progress, log)
          printResult(json, { ...result, backupMadeAt: manifest.madeAt }, () =>
            [
              `Floe runs at ${result.url} with the control database of ${moment(manifest.madeAt)}.`,
              'It is read-only until an admin or owner decides: "./floe console accept-restored".',
            ].join('\n'),
          )
        } finally {
          await lock.release()
        }
      },
    )

  verb(
    console,
    'accept-restored [cluster]',
    'decide on a restored control database, so that operations can start again',
    `Decides about every cluster, or one, whose record is in doubt because the control database was restored. The primary of each cluster is taken from its members’ reports; where these do not prove it, the command is refused with the reason. Operations that were open in the backup are ended.`,
  )
    .option('--as-recorded', 'keep the record instead, and disregard what members have reported so far')
    .action(async (cluster: string | undefined, { json, asRecorded }: Verb & { asRecorded?: boolean }) => {
      const answer = await openConsole().trpc.controlDatabase.acceptRestored.mutate({
        ...(cluster === undefined ? {} : { cluster }),
        as: asRecorded ? 'recorded' : 'reported',
      })
      printResult(json, answer, () =>
        answer.accepted
          .map(({ clusterName, evidence }) =>
            clusterName === null
              ? `Accepted: the control database. ${evidence}`
              : `Accepted: the record of cluster "${clusterName}". ${evidence}`,
          )
          .join('\n'),
      )
    })
}

/** Refuses to restore into what runs, and over what is here unless that was asked for. */
function requireReplaceable(home: Home, replace: boolean): void {
  const here = presentId(home)
  const running = ['supervisor', 'control-database'].some((name) => liveRecord(home, name) !== null)
  if (running || programNames.some((name) => runningProgram(home, name) !== null))
    throw fault('restore.running', 'Floe is running', {
      detail: 'A backup can only be restored while the console is stopped. Instances may keep running.',
      hint: 'Run "./floe down" first.',
    })
  if (here === null || replace) return
  throw fault('restore.installation_exists', `there is an installation in "${home.directory}"`, {
    detail: 'Its control database, configuration and secrets would be replaced by those of the backup.',
    hint: 'To replace them, give --replace. Otherwise set FLOE_HOME to another directory.',
  })
}

/** The id of the installation that is here, "" where it cannot be read; null where there is none. */
function presentId(home: Home): string | null {
  let damaged = false
  try {
    const configuration = readConfiguration(home)
    if (configuration !== null && !isInstallation(configuration)) readInstallation(home)
    if (configuration !== null) return configuration.installationId
  } catch (error) {
    if (error instanceof FaultError && error.fault.code === 'installation.agent_only') throw error
    damaged = true
  }
  if (damaged) return ''
  try {
    newInstallationId(home)
    return null
  } catch {
    return ''
  }
}

/** A backup of another installation knows nothing of the instances here. */
function requireSame(home: Home, installationId: string): void {
  const here = presentId(home)
  if (here === null || here === '' || here === installationId) return
  throw fault('restore.another_installation', 'the backup is of another installation', {
    detail: `The backup is of installation ${installationId}; this one is ${here}.`,
    hint: 'Set FLOE_HOME to another directory to restore it there.',
  })
}
