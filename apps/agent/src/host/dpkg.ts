import { existsSync, readFileSync } from 'node:fs'
import { fault, type HostPackage, type HostPackages } from '@floe/domain'
import { type CommandResult, runCommand } from './run-command'

const ASK_MS = 60_000
/** Of what dpkg said, so much is reported. */
const WORDS_MAX = 1_500

const ask = (program: string, ...args: string[]): Promise<CommandResult> =>
  runCommand(program, args, { timeoutMs: ASK_MS })

/** Whether this machine's first process is systemd. */
export const hasSystemd = (): boolean => existsSync('/run/systemd/system')

/**
 * Refuses a file that is not the package it is said to be, or one for another machine. Its digest was verified before; what it
 * says of itself is dpkg-deb's word.
 */
export async function verifyPackage(file: string, asked: HostPackage, here: HostPackages): Promise<void> {
  const format = ['Package', 'Version', 'Architecture', 'Floe-Distribution'].map((f) => `\${${f}}\n`).join('')
  const { status, stdout, stderr } = await ask('dpkg-deb', '--show', `--showformat=${format}`, file)
  if (status !== 0)
    throw fault('package.unreadable', `"${asked.name}" is not a package that dpkg reads`, {
      detail: stderr.trim().slice(0, WORDS_MAX),
    })
  const [name, version, architecture, distribution] = stdout.split('\n')
  const { name: askedName, version: askedVersion } = asked
  if (name !== askedName || version !== askedVersion)
    throw fault('package.other', `a package is not "${askedName}" ${askedVersion}`, {
      detail: `It says that it is "${name}" ${version}. Nothing was installed.`,
    })
  if (architecture !== here.architecture || distribution !== here.distribution)
    throw fault('package.other_machine', `package "${name}" is for another machine`, {
      detail: `It is for ${distribution || 'an unnamed distribution'} on ${architecture}; this host is ${here.distribution} on ${here.architecture}.`,
      hint: 'Build the packages on a machine like the host: "./floe engine package".',
    })
}

/** Refuses a version before the installed one. */
export async function refuseDowngrade(asked: HostPackage, here: HostPackages): Promise<void> {
  const from = here.installed.find(({ name }) => name === asked.name)?.version
  if (from === undefined) return
  const { status } = await ask('dpkg', '--compare-versions', asked.version, 'lt', from)
  if (status === 0)
    throw fault('package.downgrade', `package "${asked.name}" would go back to an earlier version`, {
      detail: `Installed is ${from}, brought was ${asked.version}. Nothing was installed.`,
      hint: 'If that is wanted, upgrade with --downgrade.',
    })
}

/**
 * Refuses packages that need one that is neither installed nor brought: dpkg would unpack them, leave them unconfigured, and with
 * them an agent that is stopped.
 */
export async function refuseUnmet(files: readonly string[], brought: readonly HostPackage[]): Promise<void> {
  for (const file of files) {
    const { stdout } = await ask('dpkg-deb', '--field', file, 'Depends')
    for (const clause of stdout
      .trim()
      .split(/\s*,\s*/)
      .filter(Boolean)) {
      const met = await Promise.all(clause.split(/\s*\|\s*/).map((one) => isMet(one, brought)))
      if (met.includes(true)) continue
      throw fault('package.unmet', 'the packages need another one that the host does not have', {
        detail: `It is "${clause}". Nothing was installed.`,
        hint: `Run as root on the host: apt-get install ${clause.split(/[ |(]/)[0]}`,
      })
    }
  }
}

async function isMet(one: string, brought: readonly HostPackage[]): Promise<boolean> {
  const [, name, relation, wanted] =
    /^([a-z0-9][a-z0-9.+-]*)(?::\w+)?\s*(?:\(\s*(<<|<=|=|>=|>>)\s*([^)\s]+)\s*\))?$/.exec(one) ?? []
  if (!name) return false
  const version = brought.find((p) => p.name === name)?.version ?? (await installedVersion(name))
  if (version === undefined) return false
  if (!relation || !wanted) return true
  return (await ask('dpkg', '--compare-versions', version, relation, wanted)).status === 0
}

async function installedVersion(name: string): Promise<string | undefined> {
  const format = '--showformat=$' + '{db:Status-Status} $' + '{Version}\n'
  const { stdout } = await ask('dpkg-query', '--show', format, name)
  return /^installed (\S+)$/m.exec(stdout)?.[1]
}

/** The unit in which dpkg works for an upgrade: not the agent's, which the packages stop. */
const unitOf = (upgradeId: string) => `floe-packages-${upgradeId}.service`

/** Has dpkg install packages, in a unit of its own; `log` is there from the moment on that it has begun. */
export async function startDpkg(
  upgradeId: string,
  { files, log, downgrade }: { files: readonly string[]; log: string; downgrade: boolean },
): Promise<void> {
  const { status, stderr } = await ask(
    'systemd-run',
    ...['--quiet', '--collect', '--no-block', `--unit=${unitOf(upgradeId)}`],
    '--description=Floe’s packages, brought by its console',
    // also where dpkg was killed between the scripts that stop the agent and start it: it says what is left
    '--property=ExecStopPost=-/bin/systemctl --no-block start floe-agent.service',
    ...[`--property=StandardOutput=append:${log}`, `--property=StandardError=append:${log}`],
    ...['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL=C.UTF-8'].map(
      (variable) => `--setenv=${variable}`,
    ),
    ...['--setenv=DEBIAN_FRONTEND=noninteractive', '--', 'dpkg', '--force-confdef', '--force-confold'],
    ...(downgrade ? [] : ['--refuse-downgrade']),
    ...['--install', ...files],
  )
  // one that is there already was started by a run that was killed
  if (status !== 0 && !(await isAtWork(upgradeId)))
    throw fault('package.not_begun', 'the installation of packages could not be begun', {
      detail: `systemd-run says: ${stderr.trim().slice(0, WORDS_MAX)}. Nothing was installed.`,
    })
}

/** Whether dpkg still works for an upgrade, or is about to; also where systemd does not say. */
export async function isAtWork(upgradeId: string): Promise<boolean> {
  const { status, stdout } = await ask(
    'systemctl',
    ...['show', '--property=ActiveState,Job', unitOf(upgradeId)],
  )
  return status !== 0 || !/^ActiveState=(inactive|failed)$/m.test(stdout) || /^Job=[1-9]/m.test(stdout)
}

/** The last of what dpkg said; null where it has not begun. */
export function wordsOfDpkg(log: string): string | null {
  try {
    return readFileSync(log, 'utf8').trim().slice(-WORDS_MAX)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** What dpkg left, where that is not what was asked for: each package in words, and the command that fixes it. */
export function whatIsLeft(asked: readonly HostPackage[], here: HostPackages, words: string) {
  const seen = (name: string) => here.installed.find((p) => p.name === name)
  const half = asked.filter(({ name }) => !['installed', undefined].includes(seen(name)?.status))
  const detail = asked
    .map(({ name }) => {
      const is = seen(name)
      return is ? `"${name}" ${is.version} is ${is.status}` : `"${name}" is not installed`
    })
    .join(', ')
  const broken = half.some(({ name }) => seen(name)?.status === 'half-installed')
  return fault(
    half.length > 0 ? 'package.half_configured' : 'package.not_installed',
    half.length > 0
      ? `dpkg left ${half.map(({ name }) => `"${name}"`).join(', ')} ${broken ? 'half-installed' : 'unconfigured'}`
      : 'dpkg did not install the packages',
    {
      detail: `${detail}. dpkg says: ${words.slice(-600) || 'nothing'}`,
      hint: broken
        ? 'Run as root on the host, in the directory of the packages: apt-get install --reinstall ./floe-*.deb'
        : half.length > 0
          ? 'Run as root on the host: dpkg --configure -a'
          : 'Fix what it names, then upgrade the host again.',
    },
  )
}
