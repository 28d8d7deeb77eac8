import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import { fault, type Installation } from '@floe/domain'
import {
  controlPostmaster,
  runningPrefix,
  startControlDatabase,
  stopControlDatabase,
} from '../control-database/control'
import { ensureConsoleRole, ensureControlDatabase } from '../control-database/initialise'
import { decideInstallation, type UpOptions } from '../installation/decide'
import {
  chooseInstancesDirectory,
  chooseSocketDirectory,
  makeEngineDirectories,
  requireSpace,
} from '../installation/directories'
import { type EngineUser, ensureEngineUser } from '../installation/engine-user'
import {
  cacheDirectory,
  checkoutDirectory,
  type Home,
  makeHome,
  readInstallation,
  writeInstallation,
} from '../installation/home'
import { portIsFree, portOwner } from '../installation/ports'
import { ensureSecrets } from '../installation/secrets'
import { endProcess } from '../process/identity'
import { currentMark, liveRecord, programNames, runningProgram } from '../process/records'
import type { Progress, Step } from '../progress/progress'
import { startSupervisor } from '../supervise/start'
import { waitForAnswers } from './answers'
import { migrate, offerSetup } from './migrations'
import { planPreparation } from './prepare'

export type UpResult = {
  url: string
  /** The one-time link that makes the owner; null when there is one. */
  setupUrl: string | null
  enginePrefix: string
  home: string
  ports: { web: number; agent: number; controlDatabase: number; instances: { from: number; to: number } }
  instancesDirectory: string
  log: string
  seconds: number
}

const PROGRAM_STOP_MS = 15_000

/** Refuses when a port that is about to be bound is somebody else's. */
async function requirePorts(home: Home, before: Installation | null, next: Installation): Promise<void> {
  const ours = new Set<number>()
  if (before !== null) {
    if (runningProgram(home, 'web') !== null) ours.add(before.webPort)
    if (runningProgram(home, 'agent') !== null) ours.add(before.agentPort)
    if (controlPostmaster(before) !== null) ours.add(before.controlPort)
  }
  const wanted = [
    ['web', next.webPort, next.webAddress, '--port'],
    ['the agent', next.agentPort, next.hostAddress, '--agent-port'],
    ['the control database', next.controlPort, '127.0.0.1', '--control-port'],
  ] as const
  for (const [name, port, address, option] of wanted) {
    if (ours.has(port) || (await portIsFree(port, address))) continue
    const owner = portOwner(port)
    throw fault('installation.port_in_use', `port ${port} of ${name} is in use`, {
      detail:
        owner === null ? 'The process that listens on it could not be found.' : `It is held by ${owner}.`,
      hint: `Stop that process, or choose another port with "./floe up ${option} …".`,
    })
  }
}

/** Ends what runs with an older build or configuration; the supervisor, which is started after, starts it anew. */
export async function endOutdated(home: Home, progress: Progress): Promise<void> {
  const checkout = checkoutDirectory()
  for (const name of [...programNames].reverse()) {
    const running = runningProgram(home, name)
    if (running === null || running.mark === currentMark(home, checkout, name)) continue
    progress.say(`restarting ${name}: its build or configuration changed`)
    await endProcess(running, PROGRAM_STOP_MS)
  }
}

/**
 * Does everything from a fresh machine to a console that answers. Every step looks first at what is there, so that a run
 * after a broken one goes on where that ended, and a run on a healthy installation is quick.
 */
export async function up(home: Home, asked: UpOptions, progress: Progress, log: string): Promise<UpResult> {
  const began = Date.now()
  makeHome(home)
  requireSpace(home.directory, cacheDirectory())
  const before = readInstallation(home)
  // what was asked wrongly, and ports in use, are said before minutes are spent
  const installationId = before?.installationId ?? randomUUID()
  const decide = (user: EngineUser | null, prefix: string) =>
    decideInstallation(before, asked, {
      installationId,
      hostName: hostname(),
      enginePrefix: prefix,
      engineUser: user?.switchTo ? user.name : null,
      instancesDirectory: user ? chooseInstancesDirectory(home, user, installationId) : '',
      socketDirectory: user ? chooseSocketDirectory(home, user, installationId) : '',
    })
  await requirePorts(home, before, decide(null, ''))

  let installation: Installation | undefined
  let user: EngineUser | undefined
  let setupToken: string | null = null
  const settled = () => {
    if (installation === undefined || user === undefined) throw new Error('steps ran out of order')
    return { installation, user }
  }

  const preparation = await planPreparation(programNames, progress)
  const start: Step[] = [
    {
      name: 'installation',
      title: 'installation',
      seconds: 1,
      run: async (report) => {
        user = ensureEngineUser()
        installation = decide(user, preparation.prefix())
        for (const made of await ensureSecrets(home, installation)) report.log(`made secrets/${made}`)
        makeEngineDirectories(installation, user)
        await settleProcesses(home, before, installation, progress)
      },
    },
    {
      name: 'control-database',
      title: 'control database',
      seconds: 4,
      run: async (report) => {
        const { installation, user } = settled()
        await ensureControlDatabase(installation, user, (line) => report.log(line))
        await startControlDatabase(home, installation)
        await ensureConsoleRole(home, installation, user)
        report.now('migrations')
        await migrate(home, installation, report)
        setupToken = await offerSetup(home, installation)
      },
    },
    {
      name: 'processes',
      title: 'agent, controller and web',
      seconds: 5,
      run: async (report) => {
        const { installation } = settled()
        await endOutdated(home, progress)
        await startSupervisor(home)
        await waitForAnswers(home, installation, report)
      },
    },
  ]
  await progress.run(preparation.possible ? [...preparation.steps, ...start] : preparation.steps)
  if (!preparation.possible) preparation.refuse('up')

  const done = settled().installation
  return {
    url: done.webUrl,
    setupUrl: setupToken === null ? null : `${done.webUrl}/setup/${setupToken}`,
    enginePrefix: done.enginePrefix,
    home: home.directory,
    ports: {
      web: done.webPort,
      agent: done.agentPort,
      controlDatabase: done.controlPort,
      instances: done.instancePorts,
    },
    instancesDirectory: done.instancesDirectory,
    log,
    seconds: Math.round((Date.now() - began) / 100) / 10,
  }
}

/** Writes the configuration and, where it changed what runs, stops that: the supervisor and a control database of other settings. */
async function settleProcesses(
  home: Home,
  before: Installation | null,
  next: Installation,
  progress: Progress,
): Promise<void> {
  const changed = before === null || !isDeepStrictEqual(before, next)
  if (changed) {
    const supervisor = liveRecord(home, 'supervisor')
    if (supervisor !== null) await endProcess(supervisor, 5_000)
  }
  if (before !== null) {
    const postmaster = controlPostmaster(before)
    const prefix = postmaster && runningPrefix(postmaster)
    if (
      postmaster !== null &&
      (before.controlPort !== next.controlPort || (prefix !== null && prefix !== next.enginePrefix))
    ) {
      progress.say('restarting the control database: its port or engine changed')
      await stopControlDatabase(existsSync(before.enginePrefix) ? before : next)
    }
  }
  if (changed) writeInstallation(home, next)
}
