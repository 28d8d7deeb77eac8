import { randomUUID } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { fault, type Installation, secretFiles, webSocketIn } from '@floe/domain'
import { replaceFile, syncDirectory } from '@floe/host/replace-file'
import { z } from 'zod'
import {
  chooseConsoleDirectory,
  chooseInstancesDirectory,
  chooseSocketDirectory,
} from '../installation/directories'
import { type Home, isInstallation, keepInstallation, readConfiguration } from '../installation/home'
import { ensureEngineUser } from '../installation/os-user'
import { forgetSecrets } from '../installation/secrets'
import { readArchive } from './archive'
import {
  BackedUpConfiguration,
  BackupManifest,
  bytesMaxOf,
  CONFIGURATION,
  DUMP,
  MANIFEST,
  secretEntry,
} from './contents'
import { readEncrypted } from './encrypted-file'

/**
 * A restore that is under way lies in `FLOE_HOME/restore/`: all of the backup, decrypted and verified. It gets that name by a
 * rename when it is whole, and goes when everything of it is in its place; until then each "./floe up", and the restore itself,
 * puts it there again.
 */
const PENDING = 'restore'
const STAGING = 'restore.new'
/** What is to be removed gets another name first: a kill in the middle of removing leaves nothing that looks pending. */
const REMOVED = 'restore.old'
const IDENTITY = 'restore.json'

const Identity = z.object({ restoreId: z.uuid() })

export type PendingRestore = {
  /** Names this restore in the control database. */
  restoreId: string
  manifest: BackupManifest
  configuration: BackedUpConfiguration
  dumpFile: string
}

const pendingDirectory = (home: Home) => join(home.directory, PENDING)

/**
 * Decrypts and verifies a backup and keeps all of it as what is to be restored. Nothing else is changed; and nothing at all
 * where it is damaged, or `judge` throws.
 */
export async function stageRestore(
  home: Home,
  file: string,
  passphrase: string,
  judge: (manifest: BackupManifest) => void = () => {},
): Promise<PendingRestore> {
  const staging = join(home.directory, STAGING)
  rmSync(staging, { recursive: true, force: true })
  mkdirSync(join(staging, 'secrets'), { recursive: true, mode: 0o700 })
  try {
    const names = new Set<string>()
    await readArchive(readEncrypted(file, passphrase), { bytesMaxOf }, async (name, _size, content) => {
      if (names.size === 0 && name !== MANIFEST) throw incomplete(`It does not begin with "${MANIFEST}".`)
      names.add(name)
      await writeContent(join(staging, name), content)
    })
    const pending = readPending(staging)
    const wanted = [CONFIGURATION, DUMP, ...pending.manifest.secrets.map(secretEntry)]
    const missing = wanted.filter((name) => !names.has(name))
    if (missing.length > 0 || names.size !== wanted.length + 1)
      throw incomplete(
        missing.length > 0 ? `It has no file "${missing[0]}".` : 'It has files that its list does not name.',
      )
    judge(pending.manifest)
  } catch (error) {
    rmSync(staging, { recursive: true, force: true })
    throw error
  }
  replaceFile(join(staging, IDENTITY), JSON.stringify({ restoreId: restoreIdFor(home, staging) }))
  syncDirectory(join(staging, 'secrets'))
  syncDirectory(staging)
  setAside(home)
  renameSync(staging, pendingDirectory(home))
  syncDirectory(home.directory)
  removeLeftovers(home)
  return pendingRestore(home) as PendingRestore
}

/** Run again with the same backup after a kill, it is the same restore: what is loaded already is not loaded over itself. */
function restoreIdFor(home: Home, staging: string): string {
  const earlier = pendingRestore(home)
  const { manifest } = readPending(staging)
  const same =
    earlier?.manifest.madeAt === manifest.madeAt &&
    earlier.manifest.installationId === manifest.installationId
  return same ? earlier.restoreId : randomUUID()
}

const incomplete = (detail: string) =>
  fault('backup.damaged', 'the file is not a backup of Floe', {
    detail,
    hint: 'Use a file that "./floe console backup" made.',
  })

async function writeContent(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const fd = openSync(path, flags, 0o600)
  try {
    for await (const piece of content)
      for (let done = 0; done < piece.length; ) done += writeSync(fd, piece, done)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** The restore that is under way; null when there is none. */
export function pendingRestore(home: Home): PendingRestore | null {
  const directory = pendingDirectory(home)
  return existsSync(join(directory, IDENTITY)) ? readPending(directory) : null
}

function readPending(directory: string): PendingRestore {
  const json = <T>(name: string, schema: z.ZodType<T>): T => {
    try {
      return schema.parse(JSON.parse(readFileSync(join(directory, name), 'utf8')))
    } catch (cause) {
      throw incomplete(
        `"${name}" of it cannot be read: ${cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause)}`,
      )
    }
  }
  const manifest = json(MANIFEST, BackupManifest)
  const configuration = json(CONFIGURATION, BackedUpConfiguration)
  if (configuration.installationId !== manifest.installationId)
    throw incomplete('Its configuration is of another installation than its list says.')
  const { restoreId } = existsSync(join(directory, IDENTITY)) ? json(IDENTITY, Identity) : { restoreId: '' }
  return { restoreId, manifest, configuration, dumpFile: join(directory, DUMP) }
}

/**
 * Puts secrets and configuration of the restore that is under way in their places; "up" gives them to whom they belong. Where
 * things lie is this machine's matter: no path, user or program is taken from a backup.
 */
export function placeRestoredFiles(home: Home, { manifest, configuration }: PendingRestore): void {
  const { installationId } = manifest
  const user = ensureEngineUser()
  const present = presentInstallation(home)
  const socketDirectory = present?.socketDirectory ?? chooseSocketDirectory(home, user, installationId)
  const { controlDatabase, ...facts } = configuration
  const installation: Installation = {
    ...facts,
    version: 1,
    enginePrefix: present?.enginePrefix ?? '',
    instancesDirectory: present?.instancesDirectory ?? chooseInstancesDirectory(home, user, installationId),
    socketDirectory,
    engineUser: user.switchTo ? user.name : null,
    webSocket: webSocketIn(socketDirectory),
    controlDatabase: { ...controlDatabase, socketDirectory: `${socketDirectory}/control` },
    users: present?.users ?? null,
    consoleDirectory: present?.consoleDirectory ?? chooseConsoleDirectory(home, user, installationId),
  }
  forgetSecrets(home, installation)
  for (const name of manifest.secrets)
    replaceFile(
      join(home.secrets, secretFiles[name]),
      readFileSync(join(pendingDirectory(home), secretEntry(name)), 'utf8'),
    )
  keepInstallation(home, installation)
  replaceFile(home.configFile, readFileSync(home.keptConfigFile, 'utf8'), { mode: 0o644 })
}

/** The installation that is here, where its configuration can be read. */
function presentInstallation(home: Home): Installation | null {
  try {
    const configuration = readConfiguration(home)
    return isInstallation(configuration) ? configuration : null
  } catch {
    return null
  }
}

/** Everything of the restore is in its place. */
export function endRestore(home: Home): void {
  setAside(home)
  syncDirectory(home.directory)
  removeLeftovers(home)
}

function setAside(home: Home): void {
  removeLeftovers(home)
  if (existsSync(pendingDirectory(home))) renameSync(pendingDirectory(home), join(home.directory, REMOVED))
}

function removeLeftovers(home: Home): void {
  rmSync(join(home.directory, REMOVED), { recursive: true, force: true })
}
