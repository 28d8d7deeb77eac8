import { existsSync, readdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { type ConsoleUsers, fault, type Installation, programHome } from '@floe/domain'
import { endProcess } from '@floe/host/process'
import { userOf } from '@floe/host/process-facts'
import { endRestore, pendingRestore, placeRestoredFiles } from '../backup/pending-restore'
import { controlPostmaster, startControlDatabase, stopControlDatabase } from '../control-database/control'
import {
  claimExternalDatabase,
  inspectDatabase,
  keepExternal,
  keptOwnerPassword,
  requireLogins,
} from '../control-database/external'
import { readExternalAddress } from '../control-database/external-address'
import { ensureConsoleRoles, ensureControlDatabase } from '../control-database/initialise'
import { requireFit } from '../control-database/judge-external'
import { loadDump } from '../control-database/load-dump'
import { countAsStarted, settleBootUnit } from '../installation/boot-unit'
import { decideInstallation, type UpOptions } from '../installation/decide'
import {
  chooseConsoleDirectory,
  chooseInstancesDirectory,
  chooseSocketDirectory,
  makeConsoleDirectories,
  makeEngineDirectories,
  requireSpace,
  SHARED_DIRECTORY,
} from '../installation/directories'
import {
  cacheDirectory,
  checkoutDirectory,
  type Home,
  installationIsWritten,
  keepInstallation,
  makeHome,
  newInstallationId,
  readInstallation,
  writeInstallation,
} from '../installation/home'
import {
  ensureConsoleUsers,
  ensureEngineUser,
  forgetConsoleUsers,
  isRoot,
  type OsUser,
} from '../installation/os-user'
import { removeSockets } from '../installation/own-files'
import { portIsFree, portOwner } from '../installation/ports'
import { confined, placePrograms, programDirectory } from '../installation/programs'
import { ensureSecrets } from '../installation/secrets'
import { prefixOf } from '../process/postmaster'
import { currentMark, liveRecord, programNames, runningProgram } from '../process/records'
import type { Progress, Step, StepReport } from '../progress/progress'
import { startSupervisor } from '../supervise/start'
import { waitForAnswers } from './answers'
import { migrate, offerSetup } from './migrations'
import { planPreparation } from './prepare'
import { renewRoles } from './renew-roles'
import { separateInstances } from './separate-instances'

export type UpResult = {
  url: string
  /** The one-time link that makes the owner; null when there is one. */
  setupUrl: string | null
  enginePrefix: string
  home: string
  ports: {
    web: number
    agent: number
    /** Names the socket; null where Floe does not run the control database. */
    controlDatabase: number | null
    instances: { from: number; to: number }
  }
  instancesDirectory: string
  log: string
  seconds: number
}

const PROGRAM_STOP_MS = 15_000

/** What was given beside the options, and is kept where nobody else reads it or where web and controller do. */
export type GivenFiles = {
  /** Of the owner of a control database that Floe does not run. */
  ownerPassword?: string
  /** PEM of the authorities that its URL names. */
  rootCertificates?: string
}

/** Refuses when a port that is about to be bound is somebody else's. */
async function requirePorts(home: Home, before: Installation | null, next: Installation): Promise<void> {
  const ours = new Set<number>()
  if (before !== null) {
    if (runningProgram(home, 'web') !== null) ours.add(before.webPort)
    if (runningProgram(home, 'agent') !== null) ours.add(before.agentPort)
  }
  const wanted = [
    ['web', next.webPort, next.webAddress, '--port'],
    ['the agent', next.agentPort, next.hostAddress, '--agent-port'],
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

/**
 * Ends what runs with an older build or configuration; the supervisor, which is started afterwards, starts it again.
 */
export async function endOutdated(
  home: Home,
  installation: Installation | null,
  progress: Progress,
): Promise<void> {
  const checkout = checkoutDirectory()
  for (const name of [...programNames].reverse()) {
    const running = runningProgram(home, name)
    const mark = currentMark(home, programDirectory(checkout, installation, name), name)
    if (running === null || running.mark === mark) continue
    progress.say(`restarting ${name}: its build or configuration changed`)
    await endProcess(running, PROGRAM_STOP_MS)
  }
}

/**
 * Does everything from a fresh machine to a console that answers. Every step looks first at what is there, so that a run
 * after a broken one goes on where that ended, and a run on a healthy installation is quick.
 */
export async function up(
  home: Home,
  { atBoot, ...asked }: UpOptions & { atBoot?: boolean },
  given: GivenFiles,
  progress: Progress,
  log: string,
): Promise<UpResult> {
  const began = Date.now()
  makeHome(home)
  requireSpace(home.directory, cacheDirectory())
  const restore = pendingRestore(home)
  if (restore !== null) placeRestoredFiles(home, restore)
  const before = readInstallation(home)
  // what was asked wrongly, and ports in use, are said before minutes are spent
  const installationId = before?.installationId ?? newInstallationId(home)
  const decide = (user: OsUser | null, users: ConsoleUsers | null, prefix: string) =>
    decideInstallation(before, asked, {
      installationId,
      hostName: hostname(),
      enginePrefix: prefix,
      engineUser: user?.switchTo ? user.name : null,
      instancesDirectory: user ? chooseInstancesDirectory(home, user, installationId) : '',
      socketDirectory: user ? chooseSocketDirectory(home, user, installationId) : '',
      users,
      consoleDirectory: user ? chooseConsoleDirectory(home, user, installationId) : '',
    })
  const next = decide(null, null, '')
  await requirePorts(home, before, next)
  await requireExternal(home, next, asked, given)

  let installation: Installation | undefined
  let setupToken: string | null = null
  const settled = () => {
    if (installation === undefined) throw new Error('steps ran out of order')
    return installation
  }

  const preparation = await planPreparation(programNames, progress)
  const start: Step[] = [
    {
      name: 'installation',
      title: 'installation',
      seconds: 1,
      run: async (report) => {
        forgetGone(report)
        const user = ensureEngineUser()
        const users = ensureConsoleUsers(installationId, home.directory)
        installation = decide(user, users, preparation.prefix())
        await settleProcesses(home, installation, progress)
        makeEngineDirectories(installation, user)
        makeConsoleDirectories(installation)
        keepInstallation(home, installation)
        for (const made of await ensureSecrets(home, installation)) report.log(`made secrets/${made}`)
        if (installation.controlDatabase.url !== null) keepExternal(home, installation, given)
        writeInstallation(home, installation)
      },
    },
    {
      name: 'control-database',
      title: 'control database',
      seconds: 4,
      run: async (report) => {
        const { url } = settled().controlDatabase
        if (url === null) await startEmbedded(home, settled(), report, progress)
        else {
          await claimExternalDatabase(home, settled(), url)
          installation = { ...settled(), controlDatabase: { ...settled().controlDatabase, claimed: true } }
          writeInstallation(home, installation)
        }
        const prepared = settled()
        if (restore !== null) await loadDump(home, prepared, restore, report)
        report.now('migrations')
        await migrate(home, prepared, report)
        if (url !== null) await requireLogins(home, prepared)
        setupToken = await offerSetup(home, prepared)
        if (restore !== null) endRestore(home)
      },
    },
    {
      name: 'processes',
      title: 'agent, controller and web',
      seconds: 5,
      run: async (report) => {
        const installation = settled()
        await settleBootUnit(home, installation, {
          asked: atBoot,
          title: `Floe: the console in ${home.directory}`,
          verbs: { start: ['up'], stop: ['down'] },
        })
        await placePrograms(checkoutDirectory(), installation, copiesInUse(home))
        await endOutdated(home, installation, progress)
        await startSupervisor(home)
        await waitForAnswers(home, installation, report)
        await separateInstances(home, installation, report, progress)
        await renewRoles(home, installation, report, progress)
        await countAsStarted(installation)
      },
    },
  ]
  await progress.run(preparation.possible ? [...preparation.steps, ...start] : preparation.steps)
  if (!preparation.possible) preparation.refuse('up')

  const done = settled()
  return {
    url: done.webUrl,
    setupUrl: setupToken === null ? null : `${done.webUrl}/setup/${setupToken}`,
    enginePrefix: done.enginePrefix,
    home: home.directory,
    ports: {
      web: done.webPort,
      agent: done.agentPort,
      controlDatabase: done.controlDatabase.url === null ? done.controlDatabase.port : null,
      instances: done.instancePorts,
    },
    instancesDirectory: done.instancesDirectory,
    log,
    seconds: Math.round((Date.now() - began) / 100) / 10,
  }
}

/** The engine that Floe runs for it, running and with its roles. */
async function startEmbedded(
  home: Home,
  installation: Installation,
  report: StepReport,
  progress: Progress,
): Promise<void> {
  const postmaster = controlPostmaster(installation)
  if (postmaster !== null && prefixOf(postmaster) !== installation.enginePrefix) {
    progress.say('restarting the control database: its engine changed')
    await stopControlDatabase(installation)
  }
  await ensureControlDatabase(installation, (line) => report.log(line))
  await startControlDatabase(home, installation)
  await ensureConsoleRoles(installation)
}

/** Refuses a control database that Floe does not run where it cannot be used; a password that does not open it is not kept. */
async function requireExternal(
  home: Home,
  next: Installation,
  asked: UpOptions,
  given: GivenFiles,
): Promise<void> {
  const kept = next.controlDatabase.url
  if (kept === null) {
    if (given.ownerPassword !== undefined)
      throw fault(
        'usage.no_control_database',
        'Floe runs the control database itself, which has no password',
        {
          hint: 'Give --control-database-password-file with --control-database, or leave both out.',
        },
      )
    return
  }
  // what was kept is read like what is given: config.json may have been edited
  const { url } = asked.controlDatabase ?? readExternalAddress(kept)
  const password = given.ownerPassword ?? keptOwnerPassword(home)
  if (password === null)
    throw fault('usage.no_password', 'there is no password of the control database’s owner', {
      detail:
        'Floe logs in as the owner to make tables and roles; web and controller get passwords of their own.',
      hint: 'Give --control-database-password-file FILE; "-" reads it from standard input.',
    })
  requireFit(await inspectDatabase(url, password), {
    url,
    installationId: next.installationId,
    claimed: next.controlDatabase.claimed === true,
  })
}

/**
 * Stops what a changed configuration would meet: the supervisor, which would start things as they were, and of an earlier
 * version web and controller, whose secrets are about to move.
 */
async function settleProcesses(home: Home, next: Installation, progress: Progress): Promise<void> {
  if (installationIsWritten(home, next)) return
  const supervisor = liveRecord(home, 'supervisor')
  if (supervisor !== null) await endProcess(supervisor, 5_000)
  if (confined.every((name) => existsSync(join(programHome(next, name), 'config.json')))) return
  for (const name of confined) {
    const running = runningProgram(home, name)
    if (running === null) continue
    progress.say(`restarting ${name}: it gets a home of its own`)
    await endProcess(running, PROGRAM_STOP_MS)
  }
}

/** Copies of the build that programs run from. */
const copiesInUse = (home: Home): Set<string> =>
  new Set(confined.flatMap((name) => runningProgram(home, name)?.copy ?? []))

/** Removes the users of installations of which nothing is left on this machine. */
function forgetGone(report: StepReport): void {
  if (!isRoot()) return
  let running: Set<number | null> | undefined
  const forgotten = forgetConsoleUsers((installationId, home, uid) => {
    if (existsSync(home) || existsSync(join(SHARED_DIRECTORY, installationId))) return false
    running ??= new Set(
      readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .map((pid) => userOf(Number(pid))),
    )
    if (running.has(uid)) return false
    try {
      removeSockets(`/run/floe/${installationId.slice(0, 8)}`)
      return true
    } catch (error) {
      // somebody works on in there: the next run looks again
      report.log(error instanceof Error ? error.message : String(error))
      return false
    }
  })
  for (const name of forgotten) report.log(`removed user ${name}: its installation is gone`)
}
