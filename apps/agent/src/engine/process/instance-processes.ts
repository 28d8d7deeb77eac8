import type { EngineUser } from '../../host/engine-user'
import type { ProcessSeen } from '../../host/process-table'
import { commandSessions } from '../../host/run-command'
import { type InstanceLayout, isAsideEngine } from '../directory/layout'
import { ageMs, ENGINE_PROGRAM, isChildTitle } from './postmaster'

/**
 * Which processes are an instance's. postmaster.pid names one, and may be gone, replaced, or that of a copy that was put
 * in the directory's place; the postmaster may have ended and left a backend behind that stands still. So each process of
 * the instance's user is looked at, and it takes two witnesses:
 *
 * - its user, which no process of an instance can leave, and
 * - where it works (by number, so that a directory that was renamed away still counts), what its command line names,
 *   which unit of systemd it belongs to, or whose child it is.
 *
 * A user that no other instance has is enough by itself. Processes of other users, e.g. a shell of root's in the data
 * directory, are never an instance's. Without root a person's own shell has the engine's user: only the engine's program
 * and its children count there.
 */
export type Belonging = {
  layout: InstanceLayout
  /** Directory of all instances: what works in another one's is not this one's. */
  instancesDirectory: string
  user: EngineUser
  /** Whether nobody else has its user. */
  ownUser: boolean
  /** Number of the directory that its postmaster was last seen to work in. */
  workedIn: string | null
  /** Number of its data directory as it is now. */
  worksIn: string | null
  /** Whether the supervision knows that a process is the instance's. */
  supervised: (pid: number) => boolean
}

export type InstanceProcesses = {
  /** All that work in or for the instance: what a stop ends. */
  all: ProcessSeen[]
  /** Of those the engine's, without its logger, which touches no data: while one runs, nothing may start here. */
  engine: ProcessSeen[]
  /** Of those the postmaster, if it is old enough to have written its postmaster.pid. */
  postmaster: ProcessSeen | null
  /** All there are of its own user, wherever they work: what a fence ends as well. The same as `all` where others have that user. */
  ofUser: ProcessSeen[]
}

/** A postmaster writes its postmaster.pid within this time. */
const PID_FILE_MS = 5_000

const LOGGER = /^postgres: (?:.*: )?logger\s*$/

/** Sorts the processes of the instance's user. */
export function sortProcesses(b: Belonging, ofUser: readonly ProcessSeen[]): InstanceProcesses {
  const own = ofUser.filter((p) => !commandSessions().has(p.stat.session) && p.stat.pid !== process.pid)
  const isEngine = (p: ProcessSeen) => p.program === ENGINE_PROGRAM
  const known = new Set(own.filter((p) => belongs(b, p, isEngine(p))).map((p) => p.stat.pid))
  for (let before = -1; before !== known.size; ) {
    before = known.size
    for (const { stat } of own) if (known.has(stat.parent)) known.add(stat.pid)
  }
  const all = own.filter((p) => known.has(p.stat.pid))
  const parents = new Set(all.map((p) => p.stat.parent))
  const engine = all.filter(
    (p) => isEngine(p) && !LOGGER.test(p.command[0] ?? '') && (parents.has(p.stat.pid) || !isNew(p)),
  )
  const pids = new Set(engine.map((p) => p.stat.pid))
  const postmaster = engine.find((p) => !isChildTitle(p.command) && !pids.has(p.stat.parent)) ?? null
  return { all, engine, postmaster, ofUser: b.ownUser ? own : all }
}

/** A postmaster that has just been started, by whomever, has not written its file yet, and has no children. */
const isNew = (p: ProcessSeen): boolean => !isChildTitle(p.command) && ageMs(p.stat.startTicks) < PID_FILE_MS

function belongs(b: Belonging, p: ProcessSeen, engine: boolean): boolean {
  if (b.supervised(p.stat.pid)) return true
  const { directory, dataDirectory } = b.layout
  const where = p.directory
  if (isAside(directory, where) || (engine && isAside(directory, dataDirectoryOf(p)))) return false
  const here =
    p.directoryNumber !== null &&
    (p.directoryNumber === b.worksIn || (p.directoryNumber === b.workedIn && !isOthers(b, where)))
  // with root no person has the engine's user
  if (!engine) return here && b.user.uid !== null
  return here || within(directory, where) || dataDirectoryOf(p) === dataDirectory || b.ownUser
}

const within = (directory: string, path: string | null): boolean =>
  path !== null && (path === directory || path.startsWith(`${directory}/`))

/** In a directory of the instance's own in which another engine runs, for a trial or a restore. */
const isAside = (directory: string, path: string | null): boolean =>
  path?.startsWith(`${directory}/`) === true &&
  isAsideEngine(path.slice(directory.length + 1).split('/')[0] as string)

/** What a number named before may be another instance's directory by now. */
const isOthers = ({ layout, instancesDirectory }: Belonging, where: string | null): boolean =>
  within(instancesDirectory, where) && !within(layout.directory, where)

/** What a postmaster's command line names; its children have none. */
function dataDirectoryOf({ command }: ProcessSeen): string | null {
  const at = command.indexOf('-D')
  return at < 0 ? null : (command[at + 1] ?? null)
}
