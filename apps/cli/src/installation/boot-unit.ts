import { existsSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { bootUnitOf, fault, type HostConfiguration } from '@floe/domain'
import { firstProcess } from '@floe/host/process-facts'
import { replaceFile } from '@floe/host/replace-file'
import { unitItem, unitLine, unitWord } from '@floe/host/unit-file'
import { runProgram } from '../run-program'
import { cacheDirectory, checkoutDirectory, type Home } from './home'

/** Where the units of a machine's own administrator are. */
const UNITS = '/etc/systemd/system'

type Host = Pick<HostConfiguration, 'hostId' | 'bootUnit'>

const unitFile = (host: Host) => join(UNITS, bootUnitOf(host))

/** What is there where the unit was asked for: of a package's, which is always there, the link that enables it. */
const askedFor = (host: Host) =>
  host.bootUnit === undefined
    ? unitFile(host)
    : join(UNITS, 'multi-user.target.wants', basename(host.bootUnit))

/** Why Floe cannot be started with this machine; null where it can. */
function whyNot(ownUid = process.getuid?.() ?? 0): string | null {
  if (ownUid !== 0) return 'Only root can make a unit of systemd.'
  const first = firstProcess()
  if (first === 'systemd') return null
  return first === null
    ? 'Which process is the first here is not known.'
    : `systemd is not the first process here: ${first} is.`
}

/** Whether Floe is started with this machine, by a unit that was asked for. */
export const startsWithMachine = (host: Host): boolean => whyNot() === null && existsSync(askedFor(host))

/** Whether Floe could be started with this machine. */
export const canStartWithMachine = (): boolean => whyNot() === null

/** How Floe is started and stopped as a whole on this machine, as words after `./floe`. */
export type BootVerbs = { start: string[]; stop: string[] }

/** The unit's text. `oneshot`: the verbs start processes that live on; only they know which, and in what order they end. */
export function bootUnitText(o: {
  title: string
  verbs: BootVerbs
  home: string
  checkout: string
  cache: string
  instancesDirectory: string
  /** Of a package: it is there before the host is enrolled, and starts nothing then. */
  shipped?: boolean
}): string {
  const verb = (words: string[]) => [unitWord(join(o.checkout, 'floe')), ...words].join(' ')
  const from = o.shipped
    ? 'Of the package floe-agent; "systemctl edit" changes it.'
    : `Written by "./floe ${o.verbs.start.join(' ')}", which replaces it; see docs/guide/where-things-are.md.`
  return `# ${from}
[Unit]
Description=${unitLine(o.title)}
Wants=network-online.target
After=network-online.target local-fs.target
RequiresMountsFor=${[o.checkout, o.home, o.cache, o.instancesDirectory].map(unitItem).join(' ')}
StartLimitIntervalSec=0
${o.shipped ? `ConditionPathExists=${unitLine(join(o.home, 'config.json'))}\n` : ''}
[Service]
Type=oneshot
RemainAfterExit=yes
Environment=${unitItem(`FLOE_HOME=${o.home}`)} ${unitItem(`FLOE_CACHE=${o.cache}`)}
ExecStart=${verb(o.verbs.start)}
ExecStop=${verb(o.verbs.stop)}
KillMode=process
Restart=on-failure
RestartSec=30
TimeoutStartSec=3600
TimeoutStopSec=180

[Install]
WantedBy=multi-user.target
`
}

async function systemctl(...words: string[]): Promise<void> {
  const { status, tail } = await runProgram('systemctl', words)
  if (status !== 0)
    throw fault('boot.systemctl_failed', `"systemctl ${words.join(' ')}" failed`, {
      detail: tail.slice(-5).join('\n'),
    })
}

/** Has Floe start with this machine, or no more, as asked; where nothing is asked a unit that is there is kept true. */
export async function settleBootUnit(
  home: Home,
  configuration: HostConfiguration,
  o: { asked: boolean | undefined; title: string; verbs: BootVerbs },
): Promise<void> {
  const name = bootUnitOf(configuration)
  const file = unitFile(configuration)
  const there = existsSync(askedFor(configuration))
  if (o.asked === undefined && !there) return
  const reason = whyNot()
  if (reason !== null) {
    if (o.asked !== true) return
    throw fault('boot.no_systemd', 'Floe cannot be started with this machine', {
      detail: reason,
      hint: `Run "./floe ${o.verbs.start.join(' ')}" after each start of the machine.`,
    })
  }
  if (o.asked === false) {
    if (!there) return
    await systemctl('disable', '--quiet', name)
    if (configuration.bootUnit !== undefined) return
    rmSync(file, { force: true })
    await systemctl('daemon-reload')
    return
  }
  if (configuration.bootUnit !== undefined) {
    await systemctl('enable', '--quiet', name)
    return
  }
  const text = bootUnitText({
    ...o,
    home: home.directory,
    checkout: checkoutDirectory(),
    cache: cacheDirectory(),
    instancesDirectory: configuration.instancesDirectory,
  })
  if (!there || readFileSync(file, 'utf8') !== text) {
    replaceFile(file, text, { mode: 0o644 })
    await systemctl('daemon-reload')
  }
  await systemctl('enable', '--quiet', name)
}

/** Marks the unit as started, so that a shutdown of the machine stops Floe in order; its verb finds everything running. */
export async function countAsStarted(configuration: HostConfiguration): Promise<void> {
  if (startsWithMachine(configuration)) await systemctl('start', '--no-block', bootUnitOf(configuration))
}

/** Starts a program in a unit of its own, apart from the session of the one who asked; what it starts lives on without it. */
export async function startInUnit(
  configuration: Host,
  program: string[],
  o: { file: string; home: string; environment: Record<string, string> },
): Promise<void> {
  const boot = bootUnitOf(configuration)
  const kept = ['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR', 'FLOE_CACHE', 'NODE_EXTRA_CA_CERTS']
  const environment = {
    ...Object.fromEntries(kept.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []))),
    ...o.environment,
  }
  const properties = [
    'Type=exec',
    'KillMode=process',
    'Restart=on-failure',
    'RestartSec=1',
    `WorkingDirectory=${o.home}`,
    `StandardOutput=append:${o.file}`,
    `StandardError=append:${o.file}`,
    // what starts before another unit is stopped after it
    `Before=${boot}`,
  ]
  const { status, tail } = await runProgram('systemd-run', [
    ...[
      '--quiet',
      '--collect',
      '--slice=floe.slice',
      `--unit=${boot.replace('.service', '-supervisor.service')}`,
    ],
    ...properties.map((property) => `--property=${property}`),
    ...Object.entries(environment).map(([name, value]) => `--setenv=${name}=${value}`),
    ...['--', ...program],
  ])
  if (status !== 0)
    throw fault('supervisor.not_started', 'the supervisor did not start', {
      detail: tail.slice(-5).join('\n') || `systemd-run ended with status ${status}.`,
    })
}
