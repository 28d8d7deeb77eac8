import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { isRunning, killProcess, type ProcessStat, readProcess } from '@floe/host/process'
import { listPids } from '@floe/host/process-facts'
import { waitFor } from '@floe/host/wait'

/** The variable that says by which run of suites a program was started, also where its parent has ended. */
export const RUN_VARIABLE = 'FLOE_TEST_RUN'
/** How long programs have to take down what they brought up: installations with their instances. */
const PATIENCE_MS = 30_000

let ending = false

/** True once this run was told to end: no program is started any more. */
export const isEnding = (): boolean => ending

/** From now on the programs that this process starts end with it, when it is asked to. */
export function endOnSignal(say: (line: string) => void): void {
  const run = randomUUID()
  process.env[RUN_VARIABLE] = run
  // Ctrl-C reaches the programs by itself
  for (const signal of ['SIGTERM', 'SIGHUP'] as const)
    process.on(signal, async () => {
      if (ending) return
      ending = true
      say(`${signal}: ending the programs of the suites`)
      const killed = await endPrograms(process.pid, run, PATIENCE_MS)
      if (killed > 0) say(`${killed} did not end within ${PATIENCE_MS / 1_000} s and were killed`)
      process.exit(128 + constants.signals[signal])
    })
}

const carries = (pid: number, run: string): boolean => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`${RUN_VARIABLE}=${run}`)
  } catch {
    return false
  }
}

/** Adds to `known` what runs below the root or below one that is known, and what carries the run's variable; not the root. */
function findPrograms(known: Map<number, ProcessStat>, root: number, run: string): void {
  const all = listPids().map(readProcess).filter(isRunning)
  const above = new Set([root, ...[...known.values()].filter(isTheSame).map(({ pid }) => pid)])
  for (const { pid } of all) if (carries(pid, run)) above.add(pid)
  // those that are found on the way are looked below, too
  for (const pid of above) for (const one of all) if (one.parent === pid) above.add(one.pid)
  for (const one of all) if (above.has(one.pid) && one.pid !== root) known.set(one.pid, one)
}

function isTheSame({ pid, startTicks }: ProcessStat): boolean {
  const now = readProcess(pid)
  return isRunning(now) && now.startTicks === startTicks
}

/**
 * Ends the programs of a run of suites: the process's own children are interrupted as Ctrl-C does it, so that they take down
 * what they brought up; what still runs after that time is killed. Answers how many had to be.
 */
export async function endPrograms(root: number, run: string, patienceMs: number): Promise<number> {
  const known = new Map<number, ProcessStat>()
  // looked for again each time: what begins meanwhile may lose its parent a moment later, and has an environment of its own
  const left = () => {
    findPrograms(known, root, run)
    return [...known.values()].filter(isTheSame)
  }
  for (const { pid, parent } of left()) {
    if (parent !== root) continue
    try {
      process.kill(pid, 'SIGINT')
    } catch {
      // it ended by itself
    }
  }
  await waitFor(() => left().length === 0, { boundMs: patienceMs, everyMs: 100 })
  let killed = 0
  await waitFor(
    () => {
      const some = left()
      killed = Math.max(killed, some.length)
      for (const one of some) killProcess(one)
      return some.length === 0
    },
    { boundMs: 5_000, everyMs: 50 },
  )
  return killed
}
