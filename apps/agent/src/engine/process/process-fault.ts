import type { Fault } from '@floe/domain'
import { directoryNumber } from '@floe/host/process-facts'
import type { ProcessSeen } from '../../host/process-table'
import type { InstanceLayout } from '../directory/layout'

/** What states of a process mean to somebody who has to end it. */
const states: Record<string, string> = {
  T: 'stopped by a signal',
  t: 'stopped by a debugger',
  D: 'waits for a disk or a file server',
  Z: 'has ended save for a thread',
}

/** `4711 (stopped by a signal)`; at most ten by name. */
export function nameProcesses(processes: readonly ProcessSeen[]): string {
  const named = processes.slice(0, 10).map(({ stat }) => {
    const state = states[stat.state]
    return state ? `${stat.pid} (${state})` : String(stat.pid)
  })
  const more = processes.length - named.length
  return `${processes.length === 1 ? 'process' : 'processes'} ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** What is wrong with an instance of which processes of the engine work, but no postmaster.pid names their postmaster. */
export function processFault(
  { name, layout }: { name: string; layout: InstanceLayout },
  engine: readonly ProcessSeen[],
  postmaster: ProcessSeen | null,
): Fault | null {
  if (engine.length === 0) return null
  if (postmaster === null)
    return {
      code: 'instance.no_postmaster',
      message: `processes of instance "${name}" work on without their postmaster`,
      detail: `The postmaster has ended; ${nameProcesses(engine)} may still acknowledge a commit.`,
      hint: 'The instance cannot start before they have ended. Stop it: that ends them.',
    }
  const { dataDirectory } = layout
  if (postmaster.directoryNumber === directoryNumber(dataDirectory))
    return {
      code: 'instance.no_pid_file',
      message: `instance "${name}" runs without its postmaster.pid`,
      detail: `Process ${postmaster.stat.pid} works in "${dataDirectory}"; the file that names it was removed or replaced.`,
      hint: 'The engine sees that within a minute, and ends. It is not started a second time: restart it.',
    }
  return {
    code: 'instance.other_directory',
    message: `instance "${name}" works in another directory than its own`,
    detail: `Process ${postmaster.stat.pid} works in "${postmaster.directory ?? 'an unknown directory'}"; "${dataDirectory}" was removed or replaced.`,
    hint: 'Clients write there. Restore that directory, or stop the instance and start it with the directory that is in its place now.',
  }
}
