import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fault, HostConfiguration, Installation, secretFiles } from '@floe/domain'

/** Paths of one installation. Everything it knows lies under `directory` (FLOE_HOME). */
export type Home = {
  directory: string
  configFile: string
  secrets: string
  log: string
  run: string
}

/** The root of this checkout; the launcher says it. */
export function checkoutDirectory(): string {
  return process.env.FLOE_CHECKOUT ?? resolve(import.meta.dirname, '../../..')
}

export function homeAt(directory: string): Home {
  return {
    directory,
    configFile: join(directory, 'config.json'),
    secrets: join(directory, 'secrets'),
    log: join(directory, 'log'),
    run: join(directory, 'run'),
  }
}

/** The installation that this command is about: FLOE_HOME, or `.floe` in the checkout. */
export function currentHome(): Home {
  return homeAt(resolve(process.env.FLOE_HOME ?? join(checkoutDirectory(), '.floe')))
}

/** Where downloads and engines are cached, outside the checkout. */
export function cacheDirectory(): string {
  const byUser =
    process.getuid?.() === 0
      ? '/var/cache/floe'
      : join(process.env.XDG_CACHE_HOME ?? join(process.env.HOME ?? '/tmp', '.cache'), 'floe')
  return resolve(process.env.FLOE_CACHE ?? byUser)
}

/**
 * `config.json`, or null when nothing has written it yet: an installation with a console, or a host that was enrolled into
 * another machine's. A file that cannot be read is a fault, never null.
 */
export function readConfiguration(home: Home): Installation | HostConfiguration | null {
  if (!existsSync(home.configFile)) return null
  let parsed: unknown
  try {
    parsed = JSON.parse(readFileSync(home.configFile, 'utf8'))
  } catch (cause) {
    throw fault('installation.unreadable', `could not read "${home.configFile}"`, {
      detail: cause instanceof Error ? cause.message : String(cause),
      hint: 'Repair the file, or move it away and run "./floe up" to write a new one.',
      cause,
    })
  }
  const ofConsole = typeof parsed === 'object' && parsed !== null && 'controlPort' in parsed
  const result = (ofConsole ? Installation : HostConfiguration).safeParse(parsed)
  if (result.success) return result.data
  throw fault('installation.invalid', `"${home.configFile}" is not valid`, {
    detail: result.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`).join('; '),
    hint: 'Repair the file, or move it away and run "./floe up" to write a new one.',
  })
}

/** True for the configuration of the console's own machine. */
export const isInstallation = (c: Installation | HostConfiguration | null): c is Installation =>
  c !== null && 'controlPort' in c

/** As readConfiguration, for commands about the console: on another host they are told so. */
export function readInstallation(home: Home): Installation | null {
  const configuration = readConfiguration(home)
  if (configuration === null || isInstallation(configuration)) return configuration
  throw fault('installation.agent_only', `"${home.directory}" is a host of another machine’s console`, {
    detail: `Only the agent of host "${configuration.hostName}" runs here.`,
    hint: 'Use "./floe agent status" here, or set FLOE_HOME to the directory of the console’s installation.',
  })
}

/** As readInstallation, for commands that need one. */
export function requireInstallation(home: Home): Installation {
  const installation = readInstallation(home)
  if (installation === null)
    throw fault('installation.missing', 'Floe is not set up here', {
      detail: `There is no "${home.configFile}".`,
      hint: 'Run "./floe up", or set FLOE_HOME to the directory of your installation.',
    })
  return installation
}

/**
 * Writes a file so that a reader, or a crash, sees either the old or the new one. The new file is created exclusively
 * under a name nobody can guess, so that who may write to the directory cannot redirect it; `owner` is given the file.
 */
export function writeWhole(
  file: string,
  text: string,
  mode: number,
  owner?: { uid: number; gid: number } | null,
): void {
  const staging = `${file}.${randomBytes(6).toString('hex')}.new`
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const fd = openSync(staging, flags, mode)
  try {
    try {
      writeFileSync(fd, text)
      if (owner) fchownSync(fd, owner.uid, owner.gid)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(staging, file)
  } catch (error) {
    rmSync(staging, { force: true })
    throw error
  }
}

/** Reads a file in a directory that the engine's user may change, without following a link. */
export function readOwned(file: string): string {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    return readFileSync(fd, 'utf8')
  } finally {
    closeSync(fd)
  }
}

export function writeInstallation(home: Home, installation: Installation): void {
  writeWhole(home.configFile, `${JSON.stringify(installation, null, 2)}\n`, 0o644)
}

/**
 * Makes a directory and those above it that are missing, one after another: Node's own way to do it never ends where the
 * kernel answers "no such file" for a directory that cannot be made (below /proc).
 */
export function makeDirectory(path: string, mode = 0o755): void {
  if (existsSync(path)) return
  const above = dirname(path)
  if (above !== path) makeDirectory(above)
  mkdirSync(path, { mode })
}

/** Makes the directories of an installation. `secrets` is for its owner alone. */
export function makeHome(home: Home): void {
  try {
    makeDirectory(home.secrets, 0o700)
    for (const directory of [home.log, home.run]) makeDirectory(directory)
  } catch (cause) {
    throw fault('installation.no_directory', `could not create "${home.directory}"`, {
      detail: cause instanceof Error ? cause.message : String(cause),
      hint: 'Set FLOE_HOME to a directory that you may write.',
      cause,
    })
  }
}

/** A secret of the installation. */
export function readSecret(home: Home, name: keyof typeof secretFiles): string {
  const file = join(home.secrets, secretFiles[name])
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (cause) {
    throw fault('installation.no_secret', `could not read "${file}"`, {
      detail: cause instanceof Error ? cause.message : String(cause),
      hint: 'Run this as the user that ran "./floe up".',
      cause,
    })
  }
}
