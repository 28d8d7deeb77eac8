import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HostConfiguration, Installation } from '@floe/domain'
import { createConsoleClient } from '../console/client'
import { waitForOperation } from '../console/wait-for-operation'
import { engineEnvironment, engineUserOf, runningPrefix } from '../control-database/control'
import { identify, type ProcessIdentity, worksIn } from '../process/identity'
import { runProgram } from '../run-program'
import { type Home, isInstallation } from './home'

const STOP_MS = 60_000

/** An instance whose postmaster runs. */
export type RunningInstance = { name: string; directory: string; postmaster: ProcessIdentity }

/** The name by which the agent knows an instance, else its id. */
function nameOf(home: Home, instanceId: string): string {
  try {
    const file = join(home.directory, 'agent/instances', `${instanceId}.json`)
    const { name } = JSON.parse(readFileSync(file, 'utf8')) as { name?: unknown }
    return typeof name === 'string' ? name : instanceId
  } catch {
    return instanceId
  }
}

/** Instances that run on this host, found by their files, so that it works while the agent does not. */
export function runningInstances(
  home: Home,
  installation: Pick<HostConfiguration, 'instancesDirectory'>,
): RunningInstance[] {
  if (!existsSync(installation.instancesDirectory)) return []
  const found: RunningInstance[] = []
  for (const entry of readdirSync(installation.instancesDirectory)) {
    if (entry === 'control') continue
    const directory = join(installation.instancesDirectory, entry, 'pgdata')
    try {
      const [pid, dataDirectory] = readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
      const postmaster = identify(Number(pid))
      if (postmaster === null || dataDirectory !== directory) continue
      if (!worksIn(postmaster.pid, directory)) continue
      found.push({ name: nameOf(home, entry), directory, postmaster })
    } catch {
      // not running
    }
  }
  return found
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
 * Stops every running instance (fast): through the console where it answers, else, and for what that left running, by
 * pg_ctl. Call it before the console is stopped. Answers the names of those that were stopped.
 */
export async function stopInstances(
  home: Home,
  installation: Installation | HostConfiguration,
): Promise<string[]> {
  const before = runningInstances(home, installation)
  if (before.length === 0) return []
  // an enrolled host cannot ask its console: it is never called
  if (isInstallation(installation)) await stopByConsole(home, installation)
  const user = engineUserOf(installation)
  await Promise.all(
    runningInstances(home, installation).map((instance) =>
      runProgram(
        join(runningPrefix(instance.postmaster) ?? installation.enginePrefix, 'bin/pg_ctl'),
        ['stop', '-w', '-t', '120', '-m', 'fast', '-D', instance.directory],
        { ...user.switchTo, cwd: '/', env: engineEnvironment() },
      ),
    ),
  )
  const running = new Set(runningInstances(home, installation).map((instance) => instance.name))
  return before.map((instance) => instance.name).filter((name) => !running.has(name))
}
