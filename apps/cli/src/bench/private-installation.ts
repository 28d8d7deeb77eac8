import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fault, toFault } from '@floe/domain'
import {
  checkoutDirectory,
  type Home,
  homeAt,
  requireInstallation,
  writeInstallation,
} from '../installation/home'
import { portIsFree } from '../installation/ports'
import { runProgram } from '../run-program'

/** An installation of its own for a benchmark: own directory, own ports, taken down and removed at the end. */
export type PrivateInstallation = {
  home: Home
  /** Runs `./floe … --json` on it and answers what it printed. */
  floe<T>(...args: string[]): Promise<T>
  remove(): Promise<void>
}

const PORTS = 64
/** On a machine that is busy with the benchmark's own load an instance may not end in time. */
const DOWN_TRIES = 3

/** Below the ports that the kernel gives to clients. */
async function freePorts(): Promise<number> {
  for (let i = 0; i < 50; i++) {
    const base = 12_000 + Math.floor(Math.random() * 300) * PORTS
    const free = await Promise.all(Array.from({ length: PORTS }, (_, n) => portIsFree(base + n)))
    if (free.every(Boolean)) return base
  }
  throw fault('bench.no_ports', `found no ${PORTS} free ports in a row between 12000 and 31200`)
}

/**
 * Brings one up; `log` gets what the launcher says. `startCrashed: false` where the agent is to leave down what crashed:
 * without it an instance is back by itself after seconds. Everything of it lies in a directory in `parent`.
 */
export async function makePrivateInstallation(
  log: (line: string) => void,
  { startCrashed = true, parent = tmpdir() }: { startCrashed?: boolean; parent?: string } = {},
): Promise<PrivateInstallation> {
  const directory = mkdtempSync(join(parent, 'floe-bench-'))
  // the engine's user must get in
  chmodSync(directory, 0o755)
  const environment = { ...process.env, FLOE_HOME: directory, FLOE_LOG: undefined, FLOE_STARTED: undefined }
  const run = async <T>(...args: string[]): Promise<T> => {
    const { status, stdout, tail } = await runProgram(
      join(checkoutDirectory(), 'floe'),
      [...args, '--json'],
      { env: environment, onLine: log },
    )
    if (status !== 0)
      throw fault('bench.floe_failed', `"floe ${args.join(' ')}" failed`, { detail: tail.join('\n') })
    return JSON.parse(stdout) as T
  }
  /** What runs is never left without its directory: nobody could take it down any more. */
  const takenDown = async () => {
    for (let tries = 1; ; tries++)
      try {
        return await run('down', '--instances')
      } catch (error) {
        const known = toFault(error)
        log(`${known.message}: ${known.detail ?? ''}`)
        if (tries === DOWN_TRIES)
          throw fault('bench.not_down', `the installation in "${directory}" could not be taken down`, {
            detail: known.detail ?? known.message,
            hint: `Run "FLOE_HOME=${directory} ./floe down --instances", then remove the directory.`,
          })
      }
  }
  const remove = async () => {
    await takenDown()
    let instances: string | undefined
    try {
      instances = (
        JSON.parse(readFileSync(join(directory, 'config.json'), 'utf8')) as { instancesDirectory: string }
      ).instancesDirectory
    } catch {
      // it never came that far
    }
    rmSync(directory, { recursive: true, force: true })
    if (instances?.startsWith('/var/lib/floe/')) rmSync(instances, { recursive: true, force: true })
  }
  try {
    const base = await freePorts()
    await run('up', '--port', String(base), '--instance-ports', `${base + 3}-${base + PORTS - 1}`)
    if (!startCrashed) {
      const home = homeAt(directory)
      writeInstallation(home, { ...requireInstallation(home), startCrashed })
      // restarts what runs with the configuration of before
      await run('up')
    }
  } catch (error) {
    await remove()
    throw error
  }
  return { home: homeAt(directory), floe: run, remove }
}
