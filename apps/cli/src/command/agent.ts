import { existsSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { fault, type HostConfiguration, secretFiles } from '@floe/domain'
import { endProcess } from '@floe/host/process'
import { type Command, InvalidArgumentError } from 'commander'
import { currentHome, type Home, makeHome } from '../installation/home'
import { runningInstances, stopInstances } from '../installation/instances'
import { printResult } from '../output'
import { liveRecord, removeRecord, runningProgram } from '../process/records'
import type { AgentHostResult } from '../up/agent-host'
import { agentAnswers } from '../up/answers'
import { holdUpLock } from '../up/lock'
import { progressOf } from './up'
import { hostAddress, port, portRange, verb } from './verb'

const STOP_MS = 20_000

type Enrol = {
  console: string
  token?: string
  authority: string
  listen?: { address: string | null; port: number | null }
  instancePorts?: { from: number; to: number }
  instances?: string
  start: boolean
  json?: boolean
}

/** `10.0.0.4:3001`, `[fd00::4]:3001`, `10.0.0.4` or `:3001` */
export function listenAddress(text: string): { address: string | null; port: number | null } {
  const match = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(text)
  const address = match?.[1] ?? match?.[2] ?? ''
  if (!match || (address === '' && match[3] === undefined))
    throw new InvalidArgumentError('It must be ADDRESS:PORT, e.g. 10.0.0.4:3001.')
  return {
    address: address === '' ? null : hostAddress(address),
    port: match[3] === undefined ? null : port(match[3]),
  }
}

function directory(text: string): string {
  if (!isAbsolute(text)) throw new InvalidArgumentError('It must be an absolute path.')
  return resolve(text)
}

function consoleUrl(text: string): string {
  try {
    const url = new URL(text)
    if (/^https?:$/.test(url.protocol)) return url.origin
  } catch {
    // said below
  }
  throw new InvalidArgumentError('It must be the console’s address, e.g. http://10.0.0.1:3000.')
}

function fingerprint(text: string): string {
  if (!/^(sha256:)?[0-9a-f]{64}$/i.test(text.replace(/(?<!sha256):/gi, '')))
    throw new InvalidArgumentError('It must be sha256: and 64 hexadecimal digits.')
  return text
}

/** A token is short; what is longer is something else. */
const TOKEN_BYTES_MAX = 4_096

/**
 * The one-time token, from where no other user of this machine sees it: arguments stand in the list of processes, and
 * preparing a fresh host takes minutes. One that was given as an argument the launcher's script has taken out of there.
 */
async function enrolmentToken(given: string | undefined): Promise<string> {
  const { FLOE_ENROL_TOKEN: inEnvironment } = process.env
  // nobody who is started from here needs it
  delete process.env.FLOE_ENROL_TOKEN
  let token = given !== undefined && given !== '-' ? given : given === undefined ? inEnvironment : undefined
  if (token === undefined && given === undefined && process.stdin.isTTY) {
    const asked = createInterface({ input: process.stdin, output: process.stderr })
    token = await asked.question('One-time token: ')
    asked.close()
  } else if (token === undefined) {
    let read = ''
    for await (const chunk of process.stdin.setEncoding('utf8')) {
      read += chunk
      if (read.length > TOKEN_BYTES_MAX) break
    }
    token = read
  }
  const trimmed = token.trim()
  if (trimmed === '' || trimmed.length > TOKEN_BYTES_MAX || /\s/.test(trimmed))
    throw fault('usage.no_token', 'there is no one-time token', {
      detail: trimmed === '' ? 'The input is empty.' : 'The input is not a token.',
      hint: 'Run the command exactly as "./floe host add NAME" or the page Hosts printed it.',
    })
  return trimmed
}

const formatResult = (r: AgentHostResult, done: string) =>
  [
    `Host "${r.hostName}" ${done}; its agent answers at ${r.agentUrl}.`,
    `Instances: directory ${r.instancesDirectory}, ports ${r.instancePorts.from}-${r.instancePorts.to}.`,
    `Log of this run: ${r.log}`,
  ].join('\n')

/** Runs a verb that changes this host, alone and with its progress shown. */
async function alone<T>(
  name: string,
  run: (home: Home, o: ReturnType<typeof progressOf>) => Promise<T>,
): Promise<T> {
  const home = currentHome()
  makeHome(home)
  const shown = progressOf(name)
  const lock = await holdUpLock(home, shown.progress)
  try {
    return await run(home, shown)
  } finally {
    await lock.release()
  }
}

function addEnrol(agent: Command): void {
  verb(
    agent,
    'enrol',
    'make this machine a host of a console on another machine',
    `Prepares this machine, makes a key, gets a certificate for it from the console by a one-time token, and starts the agent.
"./floe host add NAME" on the console's machine and the page Hosts print the whole command. Safe to run again.`,
  )
    .requiredOption('--console <url>', 'address of the console', consoleUrl)
    .option(
      '--token <token>',
      'the one-time token; "-" reads it from standard input (default: FLOE_ENROL_TOKEN, else it is asked for)',
    )
    .requiredOption('--authority <sha256>', 'fingerprint of the console’s authority', fingerprint)
    .option(
      '--listen <address:port>',
      'where the agent listens and instances are reached (default: the address that leads to the console, port 3001)',
      listenAddress,
    )
    .option(
      '--instance-ports <from-to>',
      'ports given to instances (default: port + 2499 to port + 2998)',
      portRange,
    )
    .option(
      '--instances <directory>',
      'where a directory for this host’s instances is made (default: FLOE_HOME, else /var/lib/floe); a host that is enrolled again keeps its own',
      directory,
    )
    .option(
      '--no-start',
      'do not start the agent: "agent start" does, once a disk for the instances is there',
    )
    .action(async ({ json, ...options }: Enrol) => {
      const asked = { ...options, token: await enrolmentToken(options.token) }
      const { enrolHost } = await import('../up/agent-host')
      const result = await alone('agent-enrol', (home, { progress, log }) =>
        enrolHost(home, asked, progress, log),
      )
      printResult(json, result, () =>
        options.start
          ? formatResult(result, 'is enrolled')
          : `Host "${result.hostName}" is enrolled; "./floe agent start" starts its agent.`,
      )
    })
}

export type AgentStatus = {
  hostId: string
  hostName: string
  state: 'running' | 'starting' | 'restarting' | 'stopped'
  pid: number | null
  agentAddress: string
  agentPort: number
  home: string
  instancesRunning: string[]
}

async function statusOf(home: Home, host: HostConfiguration): Promise<AgentStatus> {
  const running = runningProgram(home, 'agent')
  const supervised = liveRecord(home, 'supervisor') !== null
  const answers =
    running !== null &&
    existsSync(`${home.secrets}/${secretFiles.authority}`) &&
    (await agentAnswers(home, host).catch(() => false))
  return {
    hostId: host.hostId,
    hostName: host.hostName,
    state: running === null ? (supervised ? 'restarting' : 'stopped') : answers ? 'running' : 'starting',
    pid: running?.pid ?? null,
    agentAddress: host.hostAddress,
    agentPort: host.agentPort,
    home: home.directory,
    instancesRunning: runningInstances(home, host).map((i) => i.name),
  }
}

/** Ends supervisor and agent of an enrolled host; instances run on unless asked. */
async function stop(home: Home, host: HostConfiguration, instances: boolean) {
  const instancesStopped = instances ? await stopInstances(home, host) : []
  const stopped: string[] = []
  for (const name of ['supervisor', 'agent'] as const) {
    const running = name === 'agent' ? runningProgram(home, 'agent') : liveRecord(home, name)
    if (running !== null) {
      await endProcess(running, STOP_MS)
      stopped.push(name)
    }
    removeRecord(home, name)
  }
  return { stopped, instancesStopped, instancesRunning: runningInstances(home, host).map((i) => i.name) }
}

/** Verbs of a host that was enrolled into another machine's console; nothing else of Floe runs there. */
export function addAgent(program: Command): void {
  const agent = program
    .command('agent')
    .summary('enrol this machine as a host of a console on another machine')
    .description(
      'The agent of a host whose console runs on another machine. On the console’s own machine "./floe up" does all this.',
    )
  addEnrol(agent)
  verb(
    agent,
    'start',
    'start this host’s agent',
    'Starts the agent after a boot or an update of the checkout, and builds what is missing.',
  )
    .option(
      '--at-boot',
      'start the agent with this machine, by a unit of systemd (as root); later runs keep it',
    )
    .option('--no-at-boot', 'no more')
    .action(async ({ json, atBoot }: { json?: boolean; atBoot?: boolean }) => {
      const { startHost } = await import('../up/agent-host')
      const result = await alone('agent-start', (home, { progress, log }) =>
        startHost(home, progress, log, atBoot),
      )
      printResult(json, result, () => formatResult(result, 'runs'))
    })
  verb(
    agent,
    'stop',
    'stop this host’s agent',
    'Stops the agent. Instances keep running, unless --instances is given.',
  )
    .option('--instances', 'stop the instances too (fast)')
    .action(async ({ json, instances }: { json?: boolean; instances?: boolean }) => {
      const { requireAgentHost } = await import('../up/agent-host')
      const result = await alone('agent-stop', (home) =>
        stop(home, requireAgentHost(home), instances ?? false),
      )
      printResult(json, result, () =>
        [
          result.stopped.length === 0 ? 'Nothing was running.' : `Stopped: ${result.stopped.join(', ')}.`,
          ...(result.instancesRunning.length > 0
            ? [`Instances keep running: ${result.instancesRunning.join(', ')}.`]
            : []),
        ].join('\n'),
      )
    })
  verb(
    agent,
    'unit',
    'print the unit of systemd that the package brings',
    'Prints floe-agent.service; "./floe engine package" puts it into the package.',
    { hidden: true },
  ).action(async ({ json }: { json?: boolean }) => {
    const { packagedUnitText } = await import('../up/agent-host')
    printResult(json, { unit: packagedUnitText() }, () => packagedUnitText().trimEnd())
  })
  verb(agent, 'status', 'show this host’s agent').action(async ({ json }: { json?: boolean }) => {
    const { requireAgentHost } = await import('../up/agent-host')
    const home = currentHome()
    const s = await statusOf(home, requireAgentHost(home))
    printResult(json, s, () =>
      [
        `host       ${s.hostName} (${s.hostId})`,
        `agent      ${s.state}${s.pid === null ? '' : `, pid ${s.pid}`}, at ${s.agentAddress}, port ${s.agentPort}`,
        `home       ${s.home}`,
        `instances  ${s.instancesRunning.length === 0 ? 'none running' : s.instancesRunning.join(', ')}`,
      ].join('\n'),
    )
  })
}
