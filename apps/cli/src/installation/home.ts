import { randomUUID, X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import {
  fault,
  HostConfiguration,
  hostUri,
  Installation,
  programHome,
  secretFiles,
  urisOf,
} from '@floe/domain'
import { type ConfigurationSchema, readConfigurationFile, readSecretFile } from '@floe/host/configuration'
import { replaceFile } from '@floe/host/replace-file'

/** Paths of one installation. Everything it knows lies under `directory` (FLOE_HOME). */
export type Home = {
  directory: string
  configFile: string
  /** The configuration as it was last written; what a damaged one is mended with. */
  keptConfigFile: string
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
    keptConfigFile: join(directory, 'config.kept.json'),
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
  return readConfigurationFile(home.configFile, anyConfiguration, () => howToMend(home))
}

const anyConfiguration: ConfigurationSchema<Installation | HostConfiguration> = {
  safeParse: (value) =>
    (typeof value === 'object' && value !== null && 'webPort' in value
      ? Installation
      : HostConfiguration
    ).safeParse(value),
}

/** Whether the copy of the configuration is there and whole. */
function copyIsGood(home: Home): boolean {
  try {
    readConfigurationFile(home.keptConfigFile, anyConfiguration, '')
    return true
  } catch {
    return false
  }
}

/** The way back to a configuration with the ids that everything else of this installation was made with. */
function howToMend(home: Home): string {
  return copyIsGood(home)
    ? `Put the last good copy in its place: cp "${home.keptConfigFile}" "${home.configFile}"`
    : `Repair the file, or restore it from a backup.${idsOf(home)}`
}

/** The ids that can be read elsewhere: the host's own stands in its certificate. */
function idsOf(home: Home): string {
  try {
    const certificate = readFileSync(join(home.secrets, secretFiles.agentIdentity), 'utf8')
    const prefix = hostUri('')
    const uri = urisOf(new X509Certificate(certificate).subjectAltName).find((name) =>
      name.startsWith(prefix),
    )
    return uri ? ` Its "hostId" is ${uri.slice(prefix.length)}.` : ''
  } catch {
    return ''
  }
}

/**
 * The id of an installation that is about to be made. Refuses where one has lived: what is left of it (keys, the control
 * database, instances) bears its ids, and a second one in its place would be locked out by them.
 */
export function newInstallationId(home: Home): string {
  const left = [
    home.keptConfigFile,
    join(home.secrets, secretFiles.authorityKey),
    join(home.secrets, secretFiles.agentIdentity),
    join(home.directory, 'instances/control/pgdata'),
  ].filter((path) => existsSync(path))
  if (left.length === 0) return randomUUID()
  throw fault(
    'installation.configuration_lost',
    `"${home.configFile}" is missing, and an installation is here`,
    {
      detail: `${left.map((path) => `"${path}"`).join(', ')} ${left.length === 1 ? 'belongs' : 'belong'} to it. A new installation could use none of it.`,
      hint: `${howToMend(home)} To begin with nothing instead, set FLOE_HOME to another directory.`,
    },
  )
}

/** True for the configuration of the console's own machine. */
export const isInstallation = (c: Installation | HostConfiguration | null): c is Installation =>
  c !== null && 'webPort' in c

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

/** The files that hold the configuration: FLOE_HOME's own, and those in the homes of web and controller. */
const configurationFiles = (home: Home, installation: Installation): string[] => [
  ...(['web', 'controller'] as const).map((name) => join(programHome(installation, name), 'config.json')),
  home.keptConfigFile,
  home.configFile,
]

const configurationText = (installation: Installation) => `${JSON.stringify(installation, null, 2)}\n`

/** True when every file of the configuration says just this. */
export const installationIsWritten = (home: Home, installation: Installation): boolean =>
  configurationFiles(home, installation).every(
    (file) => existsSync(file) && readFileSync(file, 'utf8') === configurationText(installation),
  )

/** Keeps the configuration beside where it is to be, before anything is made with its ids. */
export function keepInstallation(home: Home, installation: Installation): void {
  const text = configurationText(installation)
  if (!existsSync(home.keptConfigFile) || readFileSync(home.keptConfigFile, 'utf8') !== text)
    replaceFile(home.keptConfigFile, text, { mode: 0o644 })
}

/** Writes the configuration where it is not so yet; FLOE_HOME's own last. */
export function writeInstallation(home: Home, installation: Installation): void {
  if (installationIsWritten(home, installation)) return
  for (const file of configurationFiles(home, installation))
    replaceFile(file, configurationText(installation), { mode: 0o644 })
}

/** Writes the configuration of an enrolled host, and the copy that repairs it. */
export function writeHostConfiguration(home: Home, configuration: HostConfiguration): void {
  for (const file of [home.keptConfigFile, home.configFile])
    replaceFile(file, `${JSON.stringify(configuration, null, 2)}\n`, { mode: 0o644 })
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
export const readSecret = (home: Home, name: keyof typeof secretFiles): string =>
  readSecretFile(join(home.secrets, secretFiles[name]), 'Run this as the user that ran "./floe up".')
