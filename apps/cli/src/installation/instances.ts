import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { HostConfiguration, Installation } from '@floe/domain'
import { readRegularFile } from '@floe/host/regular-file'
import { createConsoleClient } from '../console/client'
import { waitForOperation } from '../console/wait-for-operation'
import { findPostmasters, type Postmaster, stopPostmaster } from '../process/postmaster'
import { type Home, isInstallation } from './home'

const STOP_MS = 60_000
/** A shutdown checkpoint may have much to write. */
const PG_STOP_MS = 120_000

/** An instance whose postmaster runs. */
export type RunningInstance = { name: string; directory: string; postmaster: Postmaster }

/** The name by which the agent knows an instance, else its id. */
function nameOf(home: Home, instanceId: string): string {
  try {
    const file = join(home.directory, 'agent/instances', `${instanceId}.json`)
    const { name } = JSON.parse(readRegularFile(file)) as { name?: unknown }
    return typeof name === 'string' ? name : instanceId
  } catch {
    return instanceId
  }
}

/** Instances that run on this host, found by their processes, so that it works while the agent does not. */
export function runningInstances(
  home: Home,
  installation: Pick<HostConfiguration, 'instancesDirectory'>,
): RunningInstance[] {
  const { instancesDirectory } = installation
  if (!existsSync(instancesDirectory)) return []
  const idOf = new Map(
    readdirSync(instancesDirectory)
      .filter((entry) => entry !== 'control')
      .map((entry) => [join(instancesDirectory, entry, 'pgdata'), entry]),
  )
  return [...findPostmasters([...idOf.keys()])].map(([directory, postmaster]) => ({
    name: nameOf(home, idOf.get(directory) as string),
    directory,
    postmaster,
  }))
}

/** Asks the console to stop every instance, so that a stop is what they are known to have had; false when it cannot. */
async function stopByConsole(home: Home, installation: Installation): Promise<boolean> {
  try {
    const client = createConsoleClient(home, installation)
    const { instances } = await client.trpc.instance.list.query({})
    const running = instances.filter((i) => i.state === 'running')
    await Promise.all(
      running.map(async ({ instanceId }) => {
        const { operationId } = await client.trpc.instance.stop.mutate({ instanceId })
        await waitForOperation(client, operationId, { deadlineMs: STOP_MS, show: false })
      }),
    )
    return true
  } catch {
    return false
  }
}

/**
 * Stops every running instance (fast): through the console where it answers, else, and for what that left running, by a
 * signal. Call it before the console is stopped. Answers the names of those that were stopped.
 */
export async function stopInstances(
  home: Home,
  installation: Installation | HostConfiguration,
): Promise<string[]> {
  const before = runningInstances(home, installation)
  if (before.length === 0) return []
  // an enrolled host cannot ask its console: it is never called
  if (isInstallation(installation)) await stopByConsole(home, installation)
  await Promise.all(
    runningInstances(home, installation).map(({ postmaster }) => stopPostmaster(postmaster, PG_STOP_MS)),
  )
  const running = new Set(runningInstances(home, installation).map((instance) => instance.name))
  return before.map((instance) => instance.name).filter((name) => !running.has(name))
}
