import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { checkoutDirectory } from '../installation/home'
import type { StepReport } from '../progress/progress'
import { runProgram } from '../run-program'

/** Waits for another apt or dpkg instead of failing. */
const aptOptions = ['-o', 'DPkg::Lock::Timeout=600', '-o', 'Dpkg::Use-Pty=0']

/** `debian 12` as /etc/os-release says it; null where there is none. */
export function distribution(): { id: string; version: string } | null {
  try {
    const text = readFileSync('/etc/os-release', 'utf8')
    const field = (name: string) => text.match(new RegExp(`^${name}="?([^"\n]*)"?$`, 'm'))?.[1] ?? ''
    return { id: field('ID'), version: field('VERSION_ID') }
  } catch {
    return null
  }
}

/** The packages of a list that are not installed. */
export async function missingPackages(packages: string[]): Promise<string[]> {
  if (packages.length === 0) return []
  const { stdout, status } = await runProgram('dpkg-query', [
    '-W',
    '-f',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg's own format
    '${Package} ${db:Status-Abbrev}\n',
    ...packages,
  ])
  if (status === 127) return []
  const installed = new Set(
    stdout
      .split('\n')
      .filter((line) => / .i/.test(line))
      .map((line) => line.split(' ')[0]),
  )
  return packages.filter((name) => !installed.has(name))
}

/** The packages that building the engine needs and that are not installed. */
export async function missingEnginePackages(): Promise<string[]> {
  const { stdout, status, tail } = await runProgram(join(checkoutDirectory(), 'engine/tools/engine'), [
    'packages',
  ])
  if (status !== 0)
    throw fault('engine.no_packages', 'could not list the packages of the engine', {
      detail: tail.join('\n'),
    })
  return missingPackages(stdout.split('\n').filter(Boolean))
}

/**
 * Installs packages with apt-get as root on Debian or Ubuntu. Updates the package lists only when a package is not
 * found in them. Changes no source list.
 */
export async function installPackages(packages: string[], report: StepReport): Promise<void> {
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
  const apt = (...args: string[]) =>
    runProgram('apt-get', [...aptOptions, ...args], { env: environment, onLine: (line) => report.log(line) })
  const install = () => apt('install', '-y', '--no-install-recommends', ...packages)
  report.now(`installing ${packages.length === 1 ? packages[0] : `${packages.length} packages`}`)
  let result = await install()
  if (result.status !== 0) {
    report.now('reading the package lists')
    const update = await apt('update')
    if (update.status !== 0)
      throw fault('packages.no_lists', 'could not read the package lists', {
        detail: update.tail.slice(-5).join('\n'),
        hint: 'Check the network and the package sources of this machine.',
      })
    report.now(`installing ${packages.length} packages`)
    result = await install()
  }
  if (result.status !== 0)
    throw fault('packages.not_installed', 'could not install packages', {
      detail: result.tail.slice(-5).join('\n'),
      hint: `Run as root: apt-get install ${packages.join(' ')}`,
    })
}

/** True where this process can install packages without a person. */
export function canInstallPackages(): boolean {
  const id = distribution()?.id
  return process.getuid?.() === 0 && (id === 'debian' || id === 'ubuntu')
}
