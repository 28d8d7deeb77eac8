import { existsSync, lstatSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type HostPackages, PACKAGES_ACCEPTED } from '@floe/domain'
import { runCommand } from './run-command'

/** What the package of the agent brings beside the bundle; nothing of that name is in a checkout. */
const PACKAGE_FILE = join(import.meta.dirname, '../../../floe-package.json')
const DPKG_STATUS = '/var/lib/dpkg/status'
const DPKG_MS = 10_000
/** Builds of the engine beyond that are not named. */
const NAMED_MAX = 100

const namesOf = ['floe-agent', 'floe-engine', 'floe-engine-*']

/** Whether this agent runs from its package. */
export const isPackaged = (): boolean => existsSync(PACKAGE_FILE)

/** Whether root takes packages from the console: a file that only root can have made. */
export function acceptsPackages(): boolean {
  const seen = lstatSync(PACKAGES_ACCEPTED, { throwIfNoEntry: false })
  return seen?.isFile() === true && seen.uid === 0 && (seen.mode & 0o022) === 0
}

/** Of which distribution this machine is, as engine/tools/package.sh names it in packages. */
export function distribution(): string {
  const text = readFileSync('/etc/os-release', 'utf8')
  const of = (name: string) => new RegExp(`^${name}="?([^"\n]*)"?$`, 'm').exec(text)?.[1]
  return `${of('ID')}-${of('VERSION_ID') || 'rolling'}`
}

/** Floe's packages as dpkg has them now, the agent's first. */
export async function readPackages(): Promise<HostPackages> {
  const bound = { timeoutMs: DPKG_MS }
  const architecture = (await runCommand('dpkg', ['--print-architecture'], bound)).stdout.trim()
  // it fails where it knows nothing of one of the names, and reports the others
  const { stdout } = await runCommand(
    'dpkg-query',
    [
      '--show',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own
      '--showformat=${Package}\t${Version}\t${db:Status-Status}\n',
      ...namesOf,
    ],
    bound,
  )
  const installed = stdout
    .split('\n')
    .map((line) => line.split('\t'))
    .flatMap(([name, version, status]) =>
      name && version && status && status !== 'not-installed' && status !== 'config-files'
        ? [{ name, version, status }]
        : [],
    )
  return {
    ...{ distribution: distribution(), architecture, accepted: acceptsPackages() },
    installed: installed.slice(0, NAMED_MAX),
  }
}

/** What is installed on a host that was made from packages, for its reports. dpkg is asked again once it has changed something. */
export class InstalledPackages {
  #seen: HostPackages | null = null
  #changedAt: number | null = null

  get seen(): HostPackages | null {
    return this.#seen
  }

  async look(): Promise<void> {
    if (!isPackaged()) return
    const { mtimeMs } = statSync(DPKG_STATUS)
    if (mtimeMs === this.#changedAt && this.#seen?.accepted === acceptsPackages()) return
    this.#seen = await readPackages()
    this.#changedAt = mtimeMs
  }
}
