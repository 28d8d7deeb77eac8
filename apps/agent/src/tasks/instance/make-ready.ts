import { FaultError, fault, type PrimaryTold, toFault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import { keepPrimary, refuseHeldBack } from '../../engine/cluster/keep-primary'
import { readFence } from '../../engine/cluster/member-files'
import type { Instance } from '../../engine/instance'
import { CANNOT_CONNECT_NOW, sqlState } from '../../engine/process/connection'
import { findPostmaster, waitUntilReaped } from '../../engine/process/postmaster'
import { processFault } from '../../engine/process/process-fault'
import { readFileTexts } from '../../engine/settings/tracked-files'
import { makeOwnedDirectory } from '../../host/owned-files'
import { isPortFree } from '../../host/ports'
import { isThere } from '../../host/tree'
import type { TaskContext } from '../runner/task'

/** Crash recovery after a long time without a checkpoint may take this long. */
const READY_BOUND_MS = 3_600_000
/** A process that has not shown up in postmaster.pid by then did not start. */
const APPEAR_BOUND_MS = 10_000

/**
 * Starts the instance unless it runs and waits until it answers SQL. One that is fenced is refused, unless it starts
 * `asStandby`: its signal file is there then, and it can be no primary. `primary`: by the order; one that is held back
 * starts by nothing else.
 */
export async function makeReady(
  instance: Instance,
  context: TaskContext,
  { asStandby = false, primary }: { asStandby?: boolean; primary?: PrimaryTold | undefined } = {},
): Promise<{ postmasterPid: number; readyMs: number }> {
  const begun = performance.now()
  if (!isThere(instance.layout.dataDirectory))
    throw fault('instance.no_data_directory', 'the instance has no data directory', {
      detail: `Directory "${instance.layout.dataDirectory}" does not exist.`,
    })
  if (!(asStandby && isThere(instance.layout.standbySignal))) refuseFenced(instance)
  instance.activity = 'starting'
  try {
    await instance.look()
    refuseAstray(instance)
    // what could not even be tried is stopped as before, and has not crashed
    if (!instance.postmaster) {
      refuseHeldBack(instance, primary)
      await refuseTakenPort(instance, context)
    }
    if (primary) keepPrimary(context.registry, instance.instanceId, primary)
    context.registry.update(instance.instanceId, { expected: 'running' })
    if (!instance.postmaster) await launch(instance, context)
    else context.log('it is running already')
    const pid = await waitUntilReady(instance, context)
    // the report says it too before the task does
    const reported = async () => {
      await instance.look()
      return instance.state === 'running'
    }
    await waitFor(reported, { boundMs: 3_000, everyMs: 10 })
    proveGood(instance, context)
    context.log(`ready after ${Math.round(performance.now() - begun)} ms`)
    return { postmasterPid: pid, readyMs: performance.now() - begun }
  } finally {
    instance.activity = null
    await instance.look()
  }
}

/** Every way to a start goes through here. */
function refuseFenced(instance: Instance): void {
  const fence = readFence(instance.layout)
  if (fence)
    throw fault('instance.fenced', `instance "${instance.registered.name}" is fenced`, {
      detail: `It must not run as a primary: ${fence.reason}.`,
      hint: 'Rejoin it as a standby. Where its cluster has no primary, fail over first.',
    })
}

/** Two engines on one data directory, or on one port, are what must never be. */
function refuseAstray(instance: Instance): void {
  const { registered, layout } = instance
  const { engine, postmaster } = instance.processes()
  if (engine.length === 0 || findPostmaster(layout, instance.user)) return
  const astray = processFault({ ...registered, layout }, engine, postmaster)
  if (astray)
    throw new FaultError({ ...astray, hint: 'Stop it, which ends every process of it; then start it.' })
}

/** What it is ready with is what a restart that fails goes back to. */
export function proveGood(instance: Instance, context: Pick<TaskContext, 'log'>): void {
  try {
    instance.files.known.proveGood(readFileTexts(instance.layout))
  } catch (error) {
    context.log(
      `could not keep the settings it started with: ${toFault(error).detail ?? toFault(error).message}`,
    )
  }
}

async function refuseTakenPort(instance: Instance, context: TaskContext): Promise<void> {
  const { port } = instance.registered
  context.signal.throwIfAborted()
  if (!(await isPortFree(port)))
    throw fault('instance.port_in_use', `port ${port} is in use`, {
      detail: 'Something that is not this instance listens on it.',
      hint: 'Stop it, then start the instance again.',
    })
}

async function launch(instance: Instance, context: TaskContext): Promise<void> {
  makeOwnedDirectory(instance.layout.logDirectory, instance.user)
  await waitUntilReaped(instance.layout, context.signal)
  context.log('starting the engine')
  await instance.launch()
}

/** An engine whose configuration is something else than a file may not be able to say so. */
const whyWordless = ({ files }: Instance): string =>
  files.unreadable === null
    ? 'It left no word in its log.'
    : `Its settings cannot be read: ${files.unreadable}.`

async function waitUntilReady(instance: Instance, context: TaskContext): Promise<number> {
  const launched = performance.now()
  let recovering = false
  const pid = await waitFor<number>(
    async () => {
      await instance.look()
      if (!instance.postmaster) {
        const words = instance.lastWords()
        const waited = performance.now() - launched
        if ((words.length > 0 && waited > 100) || waited > APPEAR_BOUND_MS) {
          // it may have begun meanwhile, and the words be those of an engine that goes on
          await instance.look()
          if (instance.postmaster) return null
          throw fault('instance.not_started', 'the engine ended before it answered', {
            detail: words.join(' ') || whyWordless(instance),
            hint: `Its log is in directory "${instance.layout.logDirectory}".`,
          })
        }
        return null
      }
      if (instance.postmaster.status !== 'ready') {
        if (!recovering && performance.now() - launched > 2_000) {
          recovering = true
          context.log('recovering: it will answer when the WAL is replayed')
        }
        return null
      }
      // a refusal by an engine that is up (no connection left, password changed) is an answer too
      await instance
        .connect((client) => client.query('select 1'))
        .catch((error) => {
          if (sqlState(error.cause) === null || sqlState(error.cause) === CANNOT_CONNECT_NOW) throw error
        })
      return instance.postmaster.pid
    },
    { boundMs: READY_BOUND_MS, everyMs: 30, signal: context.signal },
  )
  if (pid === null)
    throw fault('instance.not_ready', 'the engine did not answer within an hour', {
      detail: 'It is still starting.',
      hint: `Its log is in directory "${instance.layout.logDirectory}".`,
    })
  return pid
}
