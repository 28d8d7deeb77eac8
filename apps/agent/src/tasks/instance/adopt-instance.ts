import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { AGENT_ROLE, type Fault, FaultError, fault, isForeseeable, toFault } from '@floe/domain'
import { directoryNumber } from '@floe/host/process-facts'
import { waitFor } from '@floe/host/wait'
import pg from 'pg'
import { z } from 'zod'
import { keepPrimary } from '../../engine/cluster/keep-primary'
import { readFence, readPassword, writeClusterHba, writeFence } from '../../engine/cluster/member-files'
import { readControlFile } from '../../engine/directory/control-file'
import { findDirectory, isSameDirectory, NotItsDirectory } from '../../engine/directory/found-directory'
import { type InstanceLayout, instanceLayout } from '../../engine/directory/layout'
import type { Instance } from '../../engine/instance'
import { CANNOT_CONNECT_NOW, sqlState, withEngine } from '../../engine/process/connection'
import {
  findPostmaster,
  isChildTitle,
  type Postmaster,
  postmasterRuns,
  unnamedPostmaster,
} from '../../engine/process/postmaster'
import { nameProcesses, processFault } from '../../engine/process/process-fault'
import type { RegisteredInstance } from '../../engine/registry/registered-instance'
import type { EngineUser } from '../../host/engine-user'
import { readOwnedFile } from '../../host/owned-files'
import { isPortFree } from '../../host/ports'
import type { ProcessSeen } from '../../host/process-table'
import { runCommand } from '../../host/run-command'
import { isThere, removeInTree, replaceInTree } from '../../host/tree'
import type { TaskBody, TaskContext, TaskOf } from '../runner/task'

type Task = TaskOf<'adopt-instance'>

/** An engine that is up answers within this time; one that recovers or is full is taken over all the same. */
const ANSWER_BOUND_MS = 10_000

const Lost = z.array(z.object({ what: z.string(), hint: z.string() }))
type Lost = z.infer<typeof Lost>
/** For a run after a kill, which finds the instance registered. */
const Noted = z.object({ lost: Lost })

/** An instance as it was found, before anything is changed. */
type Found = {
  layout: InstanceLayout
  user: EngineUser
  /** Null where it has none of its own. */
  owner: { uid: number; gid: number } | null
  copy: RegisteredInstance | null
  postmaster: Postmaster | null
  /** Its words, where one runs. */
  command: readonly string[]
  enginePrefix: string
}

/**
 * Registers an instance again that the agent has lost.
 *
 * **Claim.** What is registered is the instance that the console has recorded, and no other directory, user or engine.
 * **Because.** The directory is the one that the instance's id names on this host, below directories that only the agent
 * can change. Its owner is the user that a claim names, or one that nobody else has. The system identifier in its control
 * file is the recorded one. What listens on the recorded port is its own postmaster, by user and place, and says the same
 * system identifier; or nothing does. No other registered instance has directory, user, name or port. Of what its superuser can write
 * only that is used which could open nothing that was closed to it: the password by which it asks other members.
 * **Test.** apps/agent/test/adopt-instance.test.ts
 *
 * It neither starts nor stops anything. What runs goes on; what does not run is stopped, and starts by an order only.
 */
export const adoptInstance: TaskBody<'adopt-instance'> = async (task, context) => {
  const known = context.registry.find(task.instanceId)
  if (task.formerName !== undefined) return takeOn(task, task.formerName, context)
  if (known && known.name !== task.name)
    throw fault('instance.exists', `instance "${known.name}" already has this id`)
  if (known) {
    const noted = Noted.safeParse(context.note.read())
    // by a run of before that was killed
    if (noted.success) return settle(task, context, noted.data.lost)
    context.log('it is registered')
    return resultOf(context.instances.get(task.instanceId), [])
  }
  const found = await find(task, context)
  context.signal.throwIfAborted()
  const agentPassword = found.copy?.agentPassword ?? randomBytes(24).toString('base64url')
  const takeBack = await letAgentIn(task, found, agentPassword, context)
  try {
    const user = found.owner && (await context.users?.reclaim(task.instanceId, found.owner))
    const { registered, lost } = registrationOf(task, found, agentPassword, user ?? null)
    context.note.write({ lost } satisfies z.infer<typeof Noted>)
    const instance = context.instances.add(registered)
    if (!instance.files.known.accepted) {
      lost.push({
        what: 'what its files of settings held before',
        hint: 'Their content now counts as set through Floe: review the settings.',
      })
      context.note.write({ lost })
    }
    context.log(`registered with port ${registered.port}, user "${instance.user.name}"`)
    return await settle(task, context, lost)
  } catch (error) {
    if (!context.registry.find(task.instanceId)) takeBack()
    throw error
  }
}

const refused = (task: Pick<Task, 'name'>, detail: string, hint: string) =>
  fault('instance.not_adopted', `instance "${task.name}" cannot be adopted`, { detail, hint })

/** What a stranger's files and engines say, in an error of ours. */
const told = (text: string | null) => text?.slice(0, 300).trim()

const BY_HAND = 'Nothing was changed. Find out what is there, and whose it is.'

/** Looks at everything that has to fit, and changes nothing. */
async function find(task: Task, context: TaskContext): Promise<Found> {
  const { installation, registry, instances } = context
  refuseTaken(task, context)
  let place: ReturnType<typeof findDirectory>
  try {
    place = findDirectory(installation.instancesDirectory, task.instanceId)
  } catch (error) {
    if (error instanceof NotItsDirectory) throw refused(task, error.message, error.hint)
    throw error
  }
  const { layout } = place
  const twin = registry.list().find((other) => {
    const of = instanceLayout(installation.instancesDirectory, other.instanceId)
    return isSameDirectory(of, layout)
  })
  if (twin) throw refused(task, `Its data directory is also that of instance "${twin.name}".`, BY_HAND)
  const { user, owner } = await ownerOf(task, place.owner, context)
  const copy = readCopy(task, context)
  const enginePrefix = [copy?.enginePrefix, installation.enginePrefix].find(
    (prefix) => prefix !== undefined && existsSync(join(prefix, 'bin/postgres')),
  )
  if (!enginePrefix)
    throw fault('engine.missing', `no engine in "${installation.enginePrefix}"`, {
      hint: 'Run "./floe up" on this host.',
    })
  await refuseOtherSystem(task, layout, enginePrefix, user)
  const { postmaster, command } = findRunning(task, layout, user, owner !== null, instances)
  if (!postmaster && !(await isPortFree(task.port)))
    throw refused(
      task,
      `Something that is not this instance listens on its port ${task.port}.`,
      'Stop that, then try again.',
    )
  return { layout, user, owner, copy, postmaster, command, enginePrefix }
}

/** Names and ports are given once. */
function refuseTaken(task: Task, { registry }: TaskContext): void {
  const others = registry.list()
  if (others.some((o) => o.name === task.name))
    throw fault('instance.name_taken', `instance "${task.name}" already exists on this host`)
  const holder = others.find((o) => o.port === task.port)
  if (holder)
    throw refused(
      task,
      `Its port ${task.port} belongs to instance "${holder.name}".`,
      'Delete one of the two.',
    )
}

/** Who its processes run as, where its files belong to a user that it may have. */
async function ownerOf(
  task: Task,
  owner: { uid: number; gid: number },
  { users, instances, registry }: TaskContext,
): Promise<{ user: EngineUser; owner: Found['owner'] }> {
  const shared = instances.sharedUser
  if (owner.uid === (shared.uid ?? process.getuid?.())) return { user: shared, owner: null }
  if (!users)
    throw refused(task, `Its files belong to uid ${owner.uid}, and the agent runs as another user.`, BY_HAND)
  const other = registry.list().find((o) => o.user?.uid === owner.uid)
  if (other)
    throw refused(task, `Its files belong to uid ${owner.uid}, which instance "${other.name}" has.`, BY_HAND)
  try {
    return { user: await users.reclaim(task.instanceId, owner, { checkOnly: true }), owner }
  } catch (error) {
    const { message, detail, hint } = toFault(error)
    throw refused(
      task,
      `Its files belong to a user that it cannot have: ${message}. ${detail ?? ''}`.trim(),
      hint ?? BY_HAND,
    )
  }
}

/** What the copy of its registration says, where that is believed. */
function readCopy(task: Task, { registry, log }: TaskContext): RegisteredInstance | null {
  let copy: RegisteredInstance | null
  try {
    copy = registry.readCopy(task.instanceId)
  } catch (error) {
    const { message, detail } = toFault(error)
    log(`the copy of its registration is not used: ${[message, detail].filter(Boolean).join(': ')}`)
    return null
  }
  if (copy && (copy.name !== task.name || copy.port !== task.port))
    throw refused(
      task,
      `The copy of its registration names it "${copy.name}" with port ${copy.port}, the console "${task.name}" with port ${task.port}.`,
      BY_HAND,
    )
  return copy
}

async function refuseOtherSystem(
  task: Task,
  layout: InstanceLayout,
  enginePrefix: string,
  user: EngineUser,
): Promise<void> {
  const control = await readControlFile(enginePrefix, layout.dataDirectory, user).catch(() => null)
  if (!control)
    throw refused(
      task,
      `The control file in "${layout.dataDirectory}" cannot be read.`,
      'Where the directory is damaged, restore it from a backup, or remove it and delete the instance.',
    )
  if (control.systemIdentifier !== task.systemIdentifier)
    throw refused(
      task,
      `Its data directory is another one's: system identifier ${control.systemIdentifier}, recorded is ${task.systemIdentifier}.`,
      'Put the directory of the instance in its place, then try again.',
    )
  const binary = await runCommand(join(enginePrefix, 'bin/postgres'), ['--version'], {
    user,
    timeoutMs: 10_000,
  })
  const engine = /\(PostgreSQL\) (\d+)/.exec(binary.stdout)?.[1]
  const made = told(readOwnedFile(join(layout.dataDirectory, 'PG_VERSION')))
  if (made !== engine)
    throw refused(
      task,
      `It was made by PostgreSQL ${made}; the engine of this host is ${engine}.`,
      'Install that engine first.',
    )
}

/** The postmaster that runs in its directory, and nothing else that could be one of it. */
function findRunning(
  task: Task,
  layout: InstanceLayout,
  user: EngineUser,
  ownUser: boolean,
  instances: TaskContext['instances'],
): Pick<Found, 'postmaster' | 'command'> {
  const named = findPostmaster(layout, user)
  const { engine, postmaster } = instances.processesOf({
    instanceId: task.instanceId,
    ...(ownUser ? { user: user as RegisteredInstance['user'] } : {}),
  })
  const pids = new Set(engine.map((p) => p.stat.pid))
  const heads = engine.filter((p) => !isChildTitle(p.command) && !pids.has(p.stat.parent))
  if (heads.length > 1)
    throw refused(
      task,
      `More than one engine of its user runs: ${nameProcesses(heads)}.`,
      'Find out which of them works in its directory, and stop the others.',
    )
  if (named) {
    const head: ProcessSeen | undefined = heads[0]
    if (head && head.stat.pid !== named.pid)
      throw refused(
        task,
        `Its postmaster.pid names process ${named.pid}, and ${nameProcesses([head])} works as well.`,
        'Stop the one that is not the instance.',
      )
    return { postmaster: named, command: head?.command ?? [] }
  }
  const wrong: Fault | null = processFault({ name: task.name, layout }, engine, postmaster)
  if (wrong) throw refused(task, [wrong.message, wrong.detail].filter(Boolean).join(': '), BY_HAND)
  return postmaster
    ? { postmaster: unnamedPostmaster(postmaster), command: postmaster.command }
    : { postmaster: null, command: [] }
}

/** Files that decide who may log in; each with what it held. */
const loginFiles = (layout: InstanceLayout) => [
  layout.hbaFile,
  layout.clusterHbaFile,
  layout.identFile,
  layout.clusterIdentFile,
]

/**
 * Sees to it that the agent gets in, by who its process is where it does not know the password of its role any more; of one
 * that runs, sees that what answers on its port is it. Answers what takes the change of its files back.
 */
async function letAgentIn(
  task: Task,
  found: Found,
  agentPassword: string,
  context: TaskContext,
): Promise<() => void> {
  const { layout, user, postmaster } = found
  let before: Map<string, string | null> | null = null
  const hangup = () => {
    if (postmaster && postmasterRuns(postmaster)) process.kill(postmaster.pid, 'SIGHUP')
  }
  const takeBack = () => {
    if (!before) return
    for (const [path, text] of before)
      if (text === null) removeInTree(path, user)
      else replaceInTree(path, text, user)
    hangup()
  }
  const write = () => {
    before ??= new Map(loginFiles(layout).map((path) => [path, readOwnedFile(path)]))
    if (writeClusterHba(layout, task.roles, user))
      context.log('the agent comes in by who its process is from now on: pg_hba.conf begins with that')
    hangup()
  }
  try {
    if (postmaster) await prove(task, found, agentPassword, write, context)
    else if (!found.copy) write()
  } catch (error) {
    takeBack()
    throw error
  }
  return takeBack
}

/** Invalid password, and no line of pg_hba.conf. */
const NOT_LET_IN = ['28P01', '28000']

/** Asks what answers on its port whether it is the instance; `letIn` is called where the agent does not get in. */
async function prove(
  task: Task,
  found: Found,
  agentPassword: string,
  letIn: () => void,
  context: TaskContext,
): Promise<void> {
  const address = {
    socketDirectory: context.installation.socketDirectory,
    port: task.port,
    password: agentPassword,
    uid: found.user.uid,
  }
  let written = false
  let last: string | undefined
  const answered = await waitFor(
    async () => {
      try {
        return await withEngine(address, async (client) => {
          const { rows } = await client.query<{ system: string; standby: boolean }>(
            'select system_identifier::text as system, pg_is_in_recovery() as standby from pg_control_system()',
          )
          const [row] = rows
          if (row?.system === task.systemIdentifier && task.alone && !row.standby && !found.copy)
            await keepPassword(client, agentPassword, context)
          return row ?? null
        })
      } catch (error) {
        last = told(toFault(error).detail ?? String(error))
        if (!(error instanceof FaultError)) return null
        if (error.fault.code !== 'instance.no_connection') throw error
        const { cause } = error
        if (cause instanceof FaultError)
          throw refused(task, `${cause.fault.message}. ${cause.fault.detail ?? ''}`.trim(), BY_HAND)
        const code = sqlState(cause)
        if (code !== null && NOT_LET_IN.includes(code) && !written) {
          written = true
          letIn()
        } else if (code === CANNOT_CONNECT_NOW) context.say('waiting until it answers')
        return null
      }
    },
    { boundMs: ANSWER_BOUND_MS, everyMs: 100, signal: context.signal },
  )
  if (answered && answered.system !== task.systemIdentifier)
    throw refused(
      task,
      `Another system answers on its port ${task.port}: ${told(answered.system)}; the recorded identifier is ${task.systemIdentifier}.`,
      BY_HAND,
    )
  if (answered) return
  // its command line says where it listens, though it does not answer now
  const port = portOf(found.command)
  if (port !== task.port)
    throw refused(
      task,
      `Its engine does not answer on port ${task.port}${port === null ? '' : ` and was started with port ${port}`}: ${last}.`,
      'Stop the engine by hand if it listens elsewhere, then try again.',
    )
  context.log(`its engine runs and does not answer: ${last}`)
}

/** As the agent starts an engine: `-c port=N`. */
function portOf(command: readonly string[]): number | null {
  const word = command.find((w, i) => command[i - 1] === '-c' && /^port=\d{1,5}$/.test(w))
  return word ? Number(word.slice('port='.length)) : null
}

/** Has the agent's role know the new password. In a cluster every agent comes in by its process, and commits may wait. */
async function keepPassword(client: pg.Client, password: string, context: TaskContext): Promise<void> {
  try {
    await client.query('begin read write')
    await client.query('set local synchronous_commit = local')
    await client.query(`alter role ${AGENT_ROLE} password ${pg.escapeLiteral(scramVerifier(password))}`)
    await client.query('commit')
    context.log(`role "${AGENT_ROLE}" has a new password`)
  } catch (error) {
    context.log(`role "${AGENT_ROLE}" keeps an unknown password: ${toFault(error).detail ?? String(error)}`)
  }
}

/** What is registered, and what of a registration nothing reports any more. */
function registrationOf(
  task: Task,
  found: Found,
  agentPassword: string,
  user: RegisteredInstance['user'] | null,
): { registered: RegisteredInstance; lost: Lost } {
  const { copy, layout, postmaster, enginePrefix } = found
  const lost: Lost = []
  const workedIn = postmaster ? directoryNumber(layout.dataDirectory) : null
  const ofEngine = {
    version: 1 as const,
    instanceId: task.instanceId,
    name: task.name,
    port: task.port,
    enginePrefix,
    ...(user ? { user } : {}),
    ...(workedIn === null ? {} : { workedIn }),
    // what is not meant to be a primary is not automatically started again as one
    expected: postmaster && task.memberRole !== 'fenced' ? ('running' as const) : ('stopped' as const),
    agentPassword,
  }
  const primaryTold = task.primary && { ...task.primary, at: Date.now() }
  if (copy) {
    const newer = copy.primaryKnown && primaryTold && copy.primaryKnown.timeline > primaryTold.timeline
    const primaryKnown = newer ? copy.primaryKnown : (primaryTold ?? copy.primaryKnown)
    return {
      registered: { ...copy, ...ofEngine, ...(primaryKnown ? { primaryKnown } : {}) },
      lost,
    }
  }
  const { replication = null, repair = null } = task.logins ?? {}
  const replicationPassword = replication && readPassword(layout.passFile, replication)
  const repairPassword = repair && readPassword(layout.repairPassFile, repair)
  if (replication && !replicationPassword && task.memberRole === 'standby')
    lost.push({
      what: 'the password that it replicates with',
      hint: `Rejoin it, which makes a new one: "./floe standby rejoin ${task.name}".`,
    })
  if (repair && !repairPassword)
    lost.push({
      what: 'the password that it asks other members for pages with',
      hint: 'Press "Set up sources" on its replication page, or run "./floe cluster page-repair".',
    })
  const known = (role: string | null) => role !== null && !isForeseeable(role, task.name)
  return {
    registered: {
      ...ofEngine,
      ...(replication ? { followsAs: replication } : {}),
      ...(replication && replicationPassword
        ? { replicationPassword, ...(known(replication) ? { replicationRole: replication } : {}) }
        : {}),
      ...(repair && repairPassword
        ? { repairPassword, ...(known(repair) ? { repairRole: repair } : {}) }
        : {}),
      ...(primaryTold ? { primaryKnown: primaryTold } : {}),
      createdAt: Date.now(),
    },
    lost,
  }
}

/** Registered: keeps it from being a primary where it is not meant to be one, and sees it as the report will have it. */
async function settle(task: Task, context: TaskContext, lost: Lost) {
  const instance = context.instances.get(task.instanceId)
  await instance.look()
  await keepFenced(task, instance, context)
  if (task.primary && !keepPrimary(context.registry, task.instanceId, task.primary))
    context.log('the agent already knows a newer primary: the control database may be older than the cluster')
  if (task.primary?.heldBack) context.log('it starts as a primary only by an order of the console')
  const pid = instance.postmaster?.pid ?? null
  if (pid !== null) {
    const seen = async () => {
      await instance.look()
      return instance.state === 'running' || instance.postmaster?.pid !== pid
    }
    // registered it is: what comes now is not given up
    await waitFor(seen, { boundMs: ANSWER_BOUND_MS, everyMs: 30 })
    context.log(`its postmaster, process ${pid}, goes on; it is ${instance.state}`)
  } else context.log('it does not run; start it when it is to run')
  for (const { what, hint } of lost) context.log(`lost: ${what}. ${hint}`)
  return resultOf(instance, lost)
}

const resultOf = (instance: Instance, lost: Lost) => ({
  postmasterPid: instance.postmaster?.pid ?? null,
  port: instance.registered.port,
  directory: instance.layout.directory,
  lost,
})

/**
 * A fence of before lies in its directory and stays. Where there is none any more, one that is recorded as fenced, or as a
 * standby though its files are those of a primary, gets one. One that runs as a primary is for the console to fence, which
 * knows of which timeline.
 */
async function keepFenced(task: Task, instance: Instance, context: TaskContext): Promise<void> {
  const { layout, user, postmaster } = instance
  const control = await readControlFile(instance.enginePrefix, layout.dataDirectory, user).catch(() => null)
  if (postmaster && control?.clusterState === 'in production') {
    if (task.memberRole !== 'primary')
      context.log('it runs as a primary, and is not meant to be its cluster’s')
    return
  }
  const unmeant = task.memberRole === 'standby' && !postmaster && !isThere(layout.standbySignal)
  if (task.memberRole !== 'fenced' && !unmeant) return
  const { reason } = writeFence(
    layout,
    unmeant ? 'it is recorded as a standby and would start as a primary' : 'its cluster has another primary',
    user,
  )
  context.log(`it is fenced: ${reason}`)
}

/** One that is registered, and that the console did not know: it gets the name that the console gave it. */
async function takeOn(task: Task, formerName: string, context: TaskContext) {
  const { name, port, expected, primaryKnown } = context.registry.get(task.instanceId)
  const instance = context.instances.get(task.instanceId)
  const { systemIdentifier } = await instance.observed()
  const named = { name: task.name }
  if (name !== formerName && name !== task.name)
    throw refused(named, `It is named "${name}", not "${formerName}".`, 'Check what its host reports now.')
  if (expected === 'creating' || expected === 'deleting')
    throw refused(
      named,
      `It is being ${expected === 'creating' ? 'made' : 'deleted'}.`,
      'Wait for that to end.',
    )
  if (port !== task.port || systemIdentifier !== task.systemIdentifier)
    throw refused(
      named,
      'It is no longer the instance that was reported.',
      'Check what its host reports now.',
    )
  refuseFollower(named, instance, primaryKnown?.instanceId ?? task.instanceId)
  if (name !== task.name) {
    context.registry.update(task.instanceId, { name: task.name })
    context.log(`it is named "${task.name}" from now on; the engine says so after its next start`)
  }
  return resultOf(instance, [])
}

/** What has, or had, another primary is no cluster of its own. */
function refuseFollower(
  { name }: Pick<Task, 'name'>,
  instance: Pick<Instance, 'instanceId' | 'layout'>,
  primaryId: string,
): void {
  const fence = readFence(instance.layout)
  if (fence)
    throw fault('instance.fenced', `instance "${name}" is fenced`, {
      detail: `It must not run as a primary: ${fence.reason}.`,
      hint: 'Find out which instance took over, and check whether this one holds anything you need; then remove its directory by hand.',
    })
  if (isThere(instance.layout.standbySignal) || primaryId !== instance.instanceId)
    throw fault('instance.is_standby', `instance "${name}" is a standby`, {
      detail: 'It follows another instance, and has no cluster of its own.',
      hint: 'Adopt its primary, and create a new standby.',
    })
}
