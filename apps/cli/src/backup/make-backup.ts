import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, constants, existsSync, fstatSync, openSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { controlDatabaseUrl, fault, type Installation } from '@floe/domain'
import {
  controlPostmaster,
  engineEnvironment,
  startControlDatabase,
  stopControlDatabase,
} from '../control-database/control'
import { toolEnvironment } from '../control-database/external'
import { OWNER, SUPERUSER } from '../control-database/initialise'
import { checkoutDirectory, type Home } from '../installation/home'
import { readSecrets } from '../installation/secrets'
import { runProgram } from '../run-program'
import { type ArchiveEntry, writeArchive } from './archive'
import { type BackupManifest, CONFIGURATION, DUMP, MANIFEST, secretEntry } from './contents'
import { fileExists, piecesOf, writeEncrypted } from './encrypted-file'

export type BackupResult = { file: string; bytes: number; madeAt: number; samples: boolean }

/** Samples are measurements, most of the bytes, and not needed to go on. Their cursors go with them, so that they agree. */
const SAMPLES = 'telemetry.sample*'

/**
 * Backs up the control database, config.json and the secrets into one new file that is encrypted with a passphrase. Whoever
 * can decrypt it can be this console: it holds the key of its authority.
 */
export async function makeBackup(
  home: Home,
  installation: Installation,
  asked: { file: string; passphrase: string; samples: boolean },
): Promise<BackupResult> {
  const file = resolve(asked.file)
  if (existsSync(file)) throw fileExists(file)
  if (installation.controlDatabase.url !== null)
    throw fault('backup.external', 'Floe does not back up a control database that it does not run', {
      detail: 'Its server is somebody else’s, who backs it up and restores it with everything else there.',
      hint: `Back that database up with pg_dump, and keep "${home.configFile}" and the secrets of "${home.secrets}" and "${installation.consoleDirectory}" with it, encrypted.`,
    })
  const wasRunning = controlPostmaster(installation) !== null
  await startControlDatabase(home, installation)
  try {
    const madeAt = Date.now()
    await recordBackup(installation, { samples: asked.samples })
    const dump = await dumpDatabase(home, installation, asked.samples)
    try {
      const secrets = readSecrets(home, installation)
      const manifest: BackupManifest = {
        format: 'floe-console-backup',
        version: 1,
        installationId: installation.installationId,
        madeAt,
        secrets: [...secrets.keys()],
      }
      const text = (name: string, content: string): ArchiveEntry => {
        const bytes = Buffer.from(content)
        return { name, size: bytes.length, content: [bytes] }
      }
      const entries: ArchiveEntry[] = [
        text(MANIFEST, JSON.stringify(manifest)),
        text(CONFIGURATION, JSON.stringify(installation)),
        ...[...secrets].map(([name, secret]) => text(secretEntry(name), secret)),
        {
          name: DUMP,
          size: fstatSync(dump).size,
          content: piecesOf(dump),
        },
      ]
      const bytes = await writeEncrypted(file, asked.passphrase, writeArchive(entries))
      return { file, bytes, madeAt, samples: asked.samples }
    } finally {
      closeSync(dump)
    }
  } finally {
    if (!wasRunning) await stopControlDatabase(installation)
  }
}

/** An audit row, before anything leaves the database. */
async function recordBackup(installation: Installation, detail: { samples: boolean }): Promise<void> {
  const { status, tail } = await runProgram(process.execPath, ['tools/record-backup.mjs'], {
    cwd: join(checkoutDirectory(), 'packages/db'),
    env: {
      ...toolEnvironment(),
      DATABASE_URL: controlDatabaseUrl(installation, SUPERUSER),
      DATABASE_OWNER: OWNER,
    },
    input: JSON.stringify(detail),
  })
  if (status !== 0)
    throw fault('backup.not_recorded', 'could not write the audit row of the backup', {
      detail: tail.slice(-8).join('\n'),
      hint: 'Nothing was backed up.',
    })
}

/** pg_dump into a file without a name, which is gone when this process is, however it ends. Answers it open. */
async function dumpDatabase(home: Home, installation: Installation, samples: boolean): Promise<number> {
  const path = join(home.secrets, `dump.${randomBytes(6).toString('hex')}`)
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const fd = openSync(path, flags, 0o600)
  rmSync(path)
  const { name, socketDirectory, port } = installation.controlDatabase
  const words = [
    '--format=custom',
    '--no-owner',
    '--no-privileges',
    // bytes on their way to a host: a restore ends the upgrade that brings them
    '--exclude-table-data=package_piece',
    ...(samples ? [] : [`--exclude-table-data=${SAMPLES}`]),
    ...['--host', socketDirectory, '--port', String(port), '--username', SUPERUSER, '--dbname', name],
  ]
  const said: string[] = []
  const status = await new Promise<number>((done) => {
    const child = spawn(join(installation.enginePrefix, 'bin/pg_dump'), words, {
      cwd: '/',
      env: engineEnvironment(),
      stdio: ['ignore', fd, 'pipe'],
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => said.push(text))
    child.once('error', (error) => said.push(error.message))
    child.once('close', (code) => done(code ?? 1))
  })
  if (status === 0) return fd
  closeSync(fd)
  throw fault('backup.not_dumped', 'could not dump the control database', {
    detail: said.join('').trim().split('\n').slice(-8).join('\n'),
    hint: 'Nothing was backed up.',
  })
}
