import { existsSync, mkdirSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { agentUrl, Fault, FaultError, fault, type HostConfiguration } from '@floe/domain'
import { endProcess } from '@floe/host/process'
import { z } from 'zod'
import { bootUnitText, canStartWithMachine, countAsStarted, settleBootUnit } from '../installation/boot-unit'
import {
  chooseInstancesDirectory,
  chooseSocketDirectory,
  makeEngineDirectories,
  requireSpace,
  SHARED_DIRECTORY,
} from '../installation/directories'
import {
  cacheDirectory,
  checkoutDirectory,
  type Home,
  isInstallation,
  makeHome,
  readConfiguration,
  writeHostConfiguration,
} from '../installation/home'
import { ensureEngineUser } from '../installation/os-user'
import { PACKAGED_HOME, packagedUnit } from '../installation/package'
import { portIsFree, portOwner } from '../installation/ports'
import { liveRecord, programs, runningProgram } from '../process/records'
import type { Progress, Step } from '../progress/progress'
import { runProgram } from '../run-program'
import { startSupervisor } from '../supervise/start'
import { waitForAgent } from './answers'
import { planPreparation } from './prepare'
import { endOutdated } from './up'

const DEFAULT_PORT = 3001
/** As on the console's machine, where the agent's port is the console's + 1 and instances begin at the console's + 2500. */
const INSTANCES_AFTER = 2_499
const INSTANCES = 500

export type EnrolOptions = {
  console: string
  token: string
  authority: string
  listen?: { address: string | null; port: number | null }
  instancePorts?: { from: number; to: number }
  /** Where a directory for this host's instances is made; chosen where none is named. */
  instances?: string
  /** False: nothing is made outside FLOE_HOME and nothing is started, which startHost does. */
  start: boolean
}

export type AgentHostResult = {
  hostId: string
  hostName: string
  agentUrl: string
  home: string
  instancesDirectory: string
  instancePorts: { from: number; to: number }
  enginePrefix: string
  log: string
}

const Enrolled = z.object({ installationId: z.uuid(), hostId: z.uuid(), hostName: z.string() })

/** The configuration of this FLOE_HOME where it is an enrolled host's; null where there is none. Throws where a console lives in it. */
export function readAgentHost(home: Home): HostConfiguration | null {
  const configuration = readConfiguration(home)
  if (isInstallation(configuration))
    throw fault('agent.console_here', `"${home.directory}" holds a console with an agent of its own`, {
      detail: 'That agent is enrolled already: "./floe up" keeps it.',
      hint: 'On the console’s own machine, a second host needs another directory: set FLOE_HOME.',
    })
  return configuration
}

/** As readAgentHost, for verbs that need one. */
export function requireAgentHost(home: Home): HostConfiguration {
  const configuration = readAgentHost(home)
  if (configuration === null)
    throw fault('agent.not_enrolled', 'this host is not enrolled', {
      detail: `There is no "${home.configFile}".`,
      hint: 'Get a command for it with "./floe host add NAME" on the console’s machine, or from its page Hosts.',
    })
  return configuration
}

/**
 * Makes this machine a host of a console elsewhere: prepares it, sends the request for its certificate, starts its agent.
 * Anyone who prepares the disk of the instances in between has it not started: a token that is refused then costs no disk.
 */
export async function enrolHost(
  home: Home,
  asked: EnrolOptions,
  progress: Progress,
  log: string,
): Promise<AgentHostResult> {
  const before = readAgentHost(home)
  makeHome(home)
  requireSpace(home.directory, cacheDirectory())
  const hostAddress = asked.listen?.address ?? before?.hostAddress ?? (await ownAddress(asked.console))
  const agentPort = asked.listen?.port ?? before?.agentPort ?? DEFAULT_PORT
  const instancePorts = asked.instancePorts ??
    before?.instancePorts ?? {
      from: agentPort + INSTANCES_AFTER,
      to: agentPort + INSTANCES_AFTER + INSTANCES - 1,
    }
  if (!(runningProgram(home, 'agent') !== null && before?.agentPort === agentPort))
    await requirePort(hostAddress, agentPort)
  const preparation = await planPreparation(['agent'], progress)
  let configuration: HostConfiguration | undefined
  const enrol: Step = {
    name: 'enrolment',
    title: 'enrolment',
    seconds: 2,
    run: async (report) => {
      const enrolled = await askConsole(home, {
        console: asked.console,
        token: asked.token,
        authority: asked.authority,
        agentUrl: agentUrl({ hostAddress, agentPort }),
      })
      report.log(`enrolled as host "${enrolled.hostName}" (${enrolled.hostId})`)
      const user = ensureEngineUser()
      const same = before?.hostId === enrolled.hostId
      configuration = {
        version: 1,
        ...enrolled,
        hostAddress,
        agentPort,
        instancePorts,
        enginePrefix: preparation.prefix(),
        // by the host's own id: two hosts of one installation may be on one machine
        instancesDirectory: same
          ? before.instancesDirectory
          : asked.instances !== undefined
            ? join(asked.instances, enrolled.hostId)
            : chooseInstancesDirectory(home, user, enrolled.hostId),
        socketDirectory: same ? before.socketDirectory : chooseSocketDirectory(home, user, enrolled.hostId),
        engineUser: user.switchTo ? user.name : null,
        ...bootUnitIn(home),
      }
      if (asked.start) makeEngineDirectories(configuration, user)
      writeHostConfiguration(home, configuration)
      // who installs a package expects of it what other packages do
      if (asked.start && configuration.bootUnit !== undefined && canStartWithMachine())
        await settleBootUnit(home, configuration, { asked: true, ...bootVerbs(configuration) })
      // it reads its certificate when it starts
      const running = runningProgram(home, 'agent')
      const supervisor = liveRecord(home, 'supervisor')
      if (supervisor !== null) await endProcess(supervisor, 5_000)
      if (running !== null) await endProcess(running, 15_000)
    },
  }
  const start = startStep(home, progress, () => {
    if (configuration === undefined) throw new Error('steps ran out of order')
    return configuration
  })
  const wanted = asked.start ? [enrol, start] : [enrol]
  await progress.run(preparation.possible ? [...preparation.steps, ...wanted] : preparation.steps)
  if (!preparation.possible) preparation.refuse('agent enrol')
  return resultOf(home, requireAgentHost(home), log)
}

const bootUnitIn = (home: Home) => {
  const bootUnit = packagedUnit(home)
  return bootUnit === undefined ? {} : { bootUnit }
}

const verbs = { start: ['agent', 'start'], stop: ['agent', 'stop'] }
const bootVerbs = ({ hostName }: HostConfiguration) => ({
  title: `Floe: the agent of host ${hostName}`,
  verbs,
})

/** The unit that the package brings. */
export const packagedUnitText = (): string =>
  bootUnitText({
    title: 'Floe: the agent of this host',
    verbs,
    home: PACKAGED_HOME,
    checkout: checkoutDirectory(),
    cache: cacheDirectory(),
    instancesDirectory: SHARED_DIRECTORY,
    shipped: true,
  })

/** Starts the agent of an enrolled host, after a boot or an update of the checkout. */
export async function startHost(
  home: Home,
  progress: Progress,
  log: string,
  atBoot?: boolean,
): Promise<AgentHostResult> {
  const before = requireAgentHost(home)
  const preparation = await planPreparation(['agent'], progress)
  const configure: Step = {
    name: 'host',
    title: 'host',
    seconds: 1,
    run: async () => {
      const user = ensureEngineUser()
      const configuration = { ...before, enginePrefix: preparation.prefix(), ...bootUnitIn(home) }
      makeEngineDirectories(configuration, user)
      if (JSON.stringify(configuration) !== JSON.stringify(before) || !existsSync(home.keptConfigFile))
        writeHostConfiguration(home, configuration)
      await settleBootUnit(home, configuration, {
        asked: atBoot,
        ...bootVerbs(configuration),
      })
    },
  }
  const start = startStep(home, progress, () => requireAgentHost(home))
  await progress.run(preparation.possible ? [...preparation.steps, configure, start] : preparation.steps)
  if (!preparation.possible) preparation.refuse('agent start')
  return resultOf(home, requireAgentHost(home), log)
}

function startStep(home: Home, progress: Progress, configuration: () => HostConfiguration): Step {
  return {
    name: 'agent',
    title: 'agent',
    seconds: 2,
    run: async (report) => {
      await endOutdated(home, null, progress)
      await startSupervisor(home)
      await waitForAgent(home, configuration(), report)
      await countAsStarted(configuration())
    },
  }
}

const resultOf = (home: Home, host: HostConfiguration, log: string): AgentHostResult => ({
  hostId: host.hostId,
  hostName: host.hostName,
  agentUrl: agentUrl(host),
  home: home.directory,
  instancesDirectory: host.instancesDirectory,
  instancePorts: host.instancePorts,
  enginePrefix: host.enginePrefix,
  log,
})

/** Lets the agent ask: it makes its key and keeps it, and the token is no argument of a command. */
async function askConsole(
  home: Home,
  enrolment: { console: string; token: string; authority: string; agentUrl: string },
): Promise<z.infer<typeof Enrolled>> {
  mkdirSync(home.secrets, { recursive: true, mode: 0o700 })
  const { stdout, tail } = await runProgram(
    process.execPath,
    [join(checkoutDirectory(), programs.agent.entry), 'enrol'],
    { env: { ...process.env, FLOE_HOME: home.directory }, input: JSON.stringify(enrolment) },
  )
  let answer: unknown
  try {
    answer = JSON.parse(stdout)
  } catch (cause) {
    throw fault('enrolment.failed', 'the agent could not ask the console', {
      detail: tail.slice(-5).join('\n'),
      cause,
    })
  }
  const refused = z.object({ fault: Fault }).safeParse(answer)
  if (refused.success) throw new FaultError(refused.data.fault)
  return Enrolled.parse(answer)
}

/** The address of this machine that the console would see: of the way that leads there. */
async function ownAddress(console: string): Promise<string> {
  const { hostname, port, protocol } = new URL(console)
  return new Promise((resolve, reject) => {
    const socket = createConnection({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port) || (protocol === 'https:' ? 443 : 80),
      timeout: 5_000,
    })
    const unreachable = (detail: string) => {
      socket.destroy()
      reject(
        fault('console.unreachable', `could not reach the console at ${console}`, {
          detail,
          hint: 'It must listen where this host can reach it: "./floe up --listen ADDRESS" on its machine.',
        }),
      )
    }
    socket.once('timeout', () => unreachable('No answer within 5 s.'))
    socket.once('error', (error) => unreachable(error.message))
    socket.once('connect', () => {
      const address = socket.localAddress ?? ''
      socket.destroy()
      resolve(address.replace(/^::ffff:/, ''))
    })
  })
}

async function requirePort(address: string, port: number): Promise<void> {
  if (await portIsFree(port, address)) return
  const owner = portOwner(port)
  throw fault('agent.port_in_use', `the agent cannot listen at ${address}, port ${port}`, {
    detail:
      owner === null ? 'The port is in use, or the address is not this host’s.' : `It is held by ${owner}.`,
    hint: 'Give another with --listen ADDRESS:PORT.',
  })
}
