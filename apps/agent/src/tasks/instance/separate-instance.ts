import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { fault, type PrimaryTold, toFault } from '@floe/domain'
import { z } from 'zod'
import { refuseHeldBack } from '../../engine/cluster/keep-primary'
import type { Instance } from '../../engine/instance'
import { removeTrial } from '../../engine/settings/trial'
import { asideDirectory, listKeptAside, removeUnfinishedAside } from '../../engine/wal/kept-aside'
import type { OwnUser } from '../../host/instance-users'
import { giveEntry, handOverTree, isThere, removeInTree } from '../../host/tree'
import type { TaskBody, TaskContext } from '../runner/task'
import { endInstance } from './end-instance'
import { makeReady } from './make-ready'

/** Whether it ran when the task first began: after a kill, a stopped instance says nothing about that. */
const Noted = z.object({ wasRunning: z.boolean() })

/**
 * Gives an instance of an earlier version a user of its own: stopped in order, its files handed over by descriptor, started
 * again. What does not fit is found before it is stopped. A server started by the former user refuses a tree that is
 * half-way, because the data directory itself changes hands first; a run after a kill goes on where the last one was.
 */
export const separateInstance: TaskBody<'separate-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { registered } = instance
  const noted = Noted.safeParse(context.note.read())
  if (registered.user) {
    context.log(`it runs as user "${registered.user.name}" already`)
    // a run that was killed when its files had been handed over, and stopped it for that
    const restarted = noted.success && noted.data.wasRunning
    if (restarted) await makeReady(instance, context)
    return { user: registered.user.name, restarted, stoppedMs: 0 }
  }
  if (!context.users || instance.user.uid === null)
    throw fault('host.one_trust_domain', 'instances of this host cannot have users of their own', {
      detail: 'The agent does not run as root, so that all instances run as its own user.',
      hint: 'Run "./floe up", or "./floe agent start" on an enrolled host, as root.',
    })
  const from = instance.user.uid
  await instance.look()
  const wasRunning = noted.success ? noted.data.wasRunning : instance.postmaster !== null
  if (!noted.success) context.note.write({ wasRunning })
  const user = await context.users.claim(task.instanceId)
  context.log(`its user is "${user.name}"`)
  // its data directory changes hands first: once it has, the former user may write in none of them, and this has been done
  if (lstatSync(instance.layout.dataDirectory).uid === from) {
    // earlier versions had root open it in here; it lies elsewhere now
    removeInTree(join(instance.layout.logDirectory, 'start.log'), instance.user)
    await removeUnfinishedAside(instance)
  }
  // found now rather than after it was stopped
  for (const directory of trees(instance)) await handOverTree(directory, from, user, { checkOnly: true })
  context.signal.throwIfAborted()
  if (wasRunning) refuseHeldBack(instance, task.primary)
  const { stoppedMs } = await endInstance(instance, 'fast', context)
  await removeTrial(instance.layout.directory, instance.user)
  const begun = performance.now()
  try {
    await handOver(instance, from, user, context)
  } catch (error) {
    await takeBack(instance, from, user, wasRunning ? { primary: task.primary } : null, context)
    throw error
  }
  context.registry.update(task.instanceId, { user })
  context.log('its files belong to that user')
  if (wasRunning) await makeReady(instance, context, { primary: task.primary })
  await instance.look()
  return { user: user.name, restarted: wasRunning, stoppedMs: stoppedMs + performance.now() - begun }
}

/** The directories of an instance that its user can change; what lies beside them is root's. */
const trees = ({ layout }: Instance): string[] =>
  [
    layout.dataDirectory,
    layout.logDirectory,
    ...listKeptAside({ layout }).map(({ name }) => asideDirectory({ layout }, name)),
  ].filter((path) => isThere(path))

const filesBeside = ({ layout }: Instance): string[] => [layout.passFile, layout.repairPassFile]

async function handOver(
  instance: Instance,
  from: number,
  user: OwnUser,
  context: Pick<TaskContext, 'log' | 'progress' | 'say'>,
): Promise<void> {
  for (const directory of trees(instance))
    await handOverTree(directory, from, user, {
      onProgress: (done, all) => {
        if (directory === instance.layout.dataDirectory) context.progress(all > 0 ? done / all : null)
        context.say(`${done} of ${all} files`)
      },
    })
  for (const path of filesBeside(instance)) giveEntry(path, user)
}

/** As it was before, and started again; what fails here is said, and the first error stays the reason. */
async function takeBack(
  instance: Instance,
  from: number,
  user: OwnUser,
  start: { primary: PrimaryTold | undefined } | null,
  context: TaskContext,
): Promise<void> {
  try {
    const former = { uid: from, gid: instance.user.gid ?? from }
    for (const directory of trees(instance)) await handOverTree(directory, user.uid, former)
    for (const path of filesBeside(instance)) giveEntry(path, instance.user)
    context.log('its files belong to its former user again')
    if (start) await makeReady(instance, { ...context, signal: new AbortController().signal }, start)
  } catch (error) {
    context.log(
      `it could not be restored to its former state: ${toFault(error).detail ?? toFault(error).message}`,
    )
  }
}
