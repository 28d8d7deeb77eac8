import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Installation } from '@floe/domain'
import { engineEnvironment, engineUserOf, runningPrefix } from '../control-database/control'
import { identify, type ProcessIdentity } from '../process/identity'
import { runProgram } from '../run-program'

/** An instance whose postmaster runs. */
export type RunningInstance = { name: string; directory: string; postmaster: ProcessIdentity }

/** The name the agent wrote into the instance's directory, else the directory's own. */
function nameOf(directory: string, otherwise: string): string {
  try {
    const { name } = JSON.parse(readFileSync(join(directory, 'instance.json'), 'utf8')) as { name?: unknown }
    return typeof name === 'string' ? name : otherwise
  } catch {
    return otherwise
  }
}

/** Instances that run on this host, found by their files, so that it works while the agent does not. */
export function runningInstances(installation: Installation): RunningInstance[] {
  if (!existsSync(installation.instancesDirectory)) return []
  const found: RunningInstance[] = []
  for (const entry of readdirSync(installation.instancesDirectory)) {
    if (entry === 'control') continue
    const directory = join(installation.instancesDirectory, entry, 'pgdata')
    try {
      const [pid, dataDirectory] = readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
      const postmaster = identify(Number(pid))
      if (postmaster === null || dataDirectory !== directory) continue
      if (readFileSync(`/proc/${postmaster.pid}/comm`, 'utf8').trim() !== 'postgres') continue
      found.push({ name: nameOf(join(installation.instancesDirectory, entry), entry), directory, postmaster })
    } catch {
      // not running
    }
  }
  return found
}

/** Stops every running instance (fast) when asked to; answers which were stopped and which run on. */
export async function stopInstances(
  installation: Installation,
  stop: boolean,
): Promise<{ stopped: string[]; running: string[] }> {
  const before = runningInstances(installation)
  if (stop && before.length > 0) {
    const user = engineUserOf(installation)
    await Promise.all(
      before.map((instance) =>
        runProgram(
          join(runningPrefix(instance.postmaster) ?? installation.enginePrefix, 'bin/pg_ctl'),
          ['stop', '-w', '-t', '120', '-m', 'fast', '-D', instance.directory],
          { ...user.switchTo, cwd: '/', env: engineEnvironment() },
        ),
      ),
    )
  }
  const running = runningInstances(installation).map((instance) => instance.name)
  return {
    stopped: before.map((instance) => instance.name).filter((name) => !running.includes(name)),
    running,
  }
}
