import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type EngineBuild, Fault, fault, type PrimaryTold, toFault } from '@floe/domain'
import { z } from 'zod'
import { refuseHeldBack } from '../../engine/cluster/keep-primary'
import type { Instance } from '../../engine/instance'
import { buildOf, runsFrom } from '../../engine/process/build'
import { readManagedSettings } from '../../engine/settings/managed-file'
import { pendingRestart } from '../../engine/settings/pending-restart'
import { tryConfiguration } from '../../engine/settings/trial'
import { trialPlace } from '../../engine/settings/trial-place'
import { runCommand } from '../../host/run-command'
import type { TaskBody, TaskContext } from '../runner/task'
import { endInstance } from './end-instance'
import { makeReady } from './make-ready'

/** `from`: the prefix of before, written before it is stopped. `failed`: it does not start on the installed one, and goes back. */
const Noted = z.object({ from: z.string(), failed: Fault.optional() })
type Noted = z.infer<typeof Noted>

/**
 * Moves an instance that runs onto the installed engine. Before it is stopped the installed engine starts with the instance's
 * settings, on a data directory of its own. Where the instance then does not start on it, or the task is given up meanwhile,
 * it is started on the engine of before. A run after a kill goes on where the last one was, and never tries a second time what
 * has failed.
 */
export const upgradeInstance: TaskBody<'upgrade-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const to = context.installation.enginePrefix
  await instance.look()
  let noted = Noted.safeParse(context.note.read()).data ?? null
  if (noted === null) {
    context.signal.throwIfAborted()
    refuseOtherBuild(task.build, to)
    if (instance.enginePrefix === to && runsFrom(to, instance.postmaster))
      return done(instance, null, 0, context)
    await refuseUnfit(instance, to, context)
    refuseHeldBack(instance, task.primary)
    context.signal.throwIfAborted()
    noted = { from: instance.enginePrefix }
    context.note.write(noted)
  }
  const begun = performance.now()
  if (!noted.failed) {
    try {
      await startOn(instance, to, task.primary, context)
      return done(instance, buildOf(noted.from), performance.now() - begun, context)
    } catch (error) {
      if (context.signal.aborted) context.log('it was given up')
      noted = { ...noted, failed: toFault(error) }
      // before anything goes back: a run after a kill must not try it again
      context.note.write(noted)
    }
  }
  throw await goBack(instance, noted, task.primary, context)
}

function refuseOtherBuild(build: EngineBuild, installedPrefix: string): void {
  const installed = buildOf(installedPrefix)
  if (installed !== build)
    throw fault('engine.not_installed', `engine build "${build}" is not the installed one`, {
      detail: `Installed is "${installed ?? installedPrefix}".`,
      hint: 'Check the plan again: "./floe host upgrade NAME --plan".',
    })
}

/** Whatever can be known before the instance is stopped. */
async function refuseUnfit(instance: Instance, to: string, context: TaskContext): Promise<void> {
  const { name } = instance.registered
  if (!instance.postmaster || instance.state !== 'running')
    throw fault('instance.not_running', `instance "${name}" does not run`, {
      hint: 'Start it first: whether it starts on the installed engine is seen only where it ran on its former one.',
    })
  const waiting = await instance.connect((client) => pendingRestart(client))
  if (waiting.length > 0)
    throw fault('setting.restart_pending', `settings of instance "${name}" wait for a restart`, {
      detail: `They are: ${waiting.join(', ')}.`,
      hint: 'Restart it first, so that a start that fails is the engine’s alone.',
    })
  const binary = join(to, 'bin', 'postgres')
  const version = existsSync(binary) ? await versionOf(binary, instance) : null
  if (version === null)
    throw fault('engine.missing', `no engine that instance "${name}" could run is in "${to}"`, {
      hint: 'Install it on this host: "./floe up", "./floe agent start", or its package.',
    })
  const former = await versionOf(join(instance.enginePrefix, 'bin', 'postgres'), instance)
  const major = (v: string | null) => v?.split('.')[0]
  if (former !== null && major(former) !== major(version))
    throw fault('engine.other_major', 'the installed engine has another major version', {
      detail: `Instance "${name}" runs PostgreSQL ${former}, installed is ${version}.`,
    })
  context.log(`trying the settings with PostgreSQL ${version}, build ${buildOf(to)}`)
  const trial = await tryConfiguration({
    prefix: to,
    files: instance.layout,
    user: instance.user,
    place: trialPlace(context.installation, instance.instanceId),
    managed: readManagedSettings(instance.layout.managedFile),
    names: [],
    signal: context.signal,
  })
  if (!trial.starts)
    throw fault(
      'engine.would_not_start',
      `the installed engine would not start with the settings of "${name}"`,
      {
        detail: trial.reason,
        hint: 'The instance was not stopped.',
      },
    )
}

async function versionOf(binary: string, { user }: Instance): Promise<string | null> {
  const { stdout } = await runCommand(binary, ['--version'], { user, timeoutMs: 10_000 })
  return /\(PostgreSQL\) (\d[\w.]*)/.exec(stdout)?.[1] ?? null
}

/** Stops it where it runs on another engine, and starts it on this one. From the stop on it is registered with it. */
async function startOn(
  instance: Instance,
  prefix: string,
  primary: PrimaryTold | undefined,
  context: TaskContext,
): Promise<void> {
  // an engine that was ordered to stop cannot be ordered otherwise
  if (!runsFrom(prefix, instance.postmaster) || instance.postmaster?.status === 'stopping')
    await endInstance(instance, 'fast', context)
  context.registry.update(instance.instanceId, { enginePrefix: prefix })
  context.log(`it starts on build ${buildOf(prefix)}`)
  await makeReady(instance, context, { primary })
}

/** Answers why it could not be moved, with what became of it. */
async function goBack(
  instance: Instance,
  { from, failed }: Noted,
  primary: PrimaryTold | undefined,
  context: TaskContext,
): Promise<unknown> {
  const given = context.signal.aborted ? context.signal.reason : null
  const { name } = instance.registered
  const why = [failed?.message, failed?.detail].filter(Boolean).join(': ')
  if (given === null) context.log(`it did not start: ${why}`)
  // it has to run again no matter who gives up
  const whole = { ...context, signal: new AbortController().signal }
  try {
    await instance.look()
    await startOn(instance, from, primary, whole)
  } catch (error) {
    const { message, detail } = toFault(error)
    return fault(
      'engine.not_restored',
      `instance "${name}" starts neither on the installed engine nor on its former one`,
      {
        detail: `Installed: ${why}. Former: ${[message, detail].filter(Boolean).join(': ')}.`,
        hint: 'Its log has the details; "./floe instance start" tries again on the former one.',
      },
    )
  }
  context.log(`it runs on build ${buildOf(from)} again`)
  return (
    given ??
    fault('engine.not_started', `instance "${name}" did not start on the installed engine`, {
      detail: `${why}. It runs on build "${buildOf(from)}" again.`,
      hint: 'Its log has the details.',
    })
  )
}

function done(
  instance: Instance,
  former: EngineBuild | null,
  downMs: number,
  context: TaskContext,
): { former: EngineBuild | null; postmasterPid: number; downMs: number } {
  if (former === null) context.log('it runs on the installed engine already')
  const pid = instance.postmaster?.pid
  if (pid === undefined) throw fault('instance.ended_early', 'the instance has ended again')
  return { former, postmasterPid: pid, downMs }
}
