import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRunning, readProcess } from '@floe/host/process'
import { growingPauses, waitUntil } from '@floe/host/wait'
import { homeAt } from '../src/installation/home'

export const checkout = join(import.meta.dirname, '../../..')
export const launcher = join(checkout, 'floe')

export type Ended = { status: number; stdout: string; stderr: string; seconds: number }
export type ProcessStatus = {
  name: string
  state: string
  pid: number | null
  port: number | null
  user: string | null
}
export type Status = {
  state: string
  url: string
  enginePrefix: string
  processes: ProcessStatus[]
  instancesRunning: string[]
  trustDomains: string
}

function portIsFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** The first of `count` free ports in a row, drawn at random so that runs do not meet, below those the kernel gives to clients. */
export async function freePorts(count: number): Promise<number> {
  for (let i = 0; i < 100; i++) {
    const base = 10_000 + Math.floor(Math.random() * 330) * 30
    const free = await Promise.all(Array.from({ length: count }, (_, n) => portIsFree(base + n)))
    if (free.every(Boolean)) return base
  }
  throw new Error(`found no ${count} free ports in a row`)
}

/** An installation of its own, in a directory that the engine's user can reach. */
export class PrivateHome {
  readonly directory = mkdtempSync(join(tmpdir(), 'floe-launcher-'))
  readonly environment: NodeJS.ProcessEnv

  constructor() {
    chmodSync(this.directory, 0o755)
    const { FLOE_LOG: _log, FLOE_STARTED: _started, FLOE_CHECKOUT: _checkout, ...rest } = process.env
    this.environment = { ...rest, FLOE_HOME: this.directory }
  }

  /** Runs `./floe …` to its end, or for ten minutes; who was ended by a signal has said so, and has status 128. */
  run(
    args: string[],
    options: { cwd?: string; file?: string; env?: NodeJS.ProcessEnv; input?: string } = {},
  ): Promise<Ended> {
    const began = Date.now()
    return new Promise((resolve) => {
      const child = execFile(
        options.file ?? launcher,
        args,
        {
          env: { ...this.environment, ...options.env },
          cwd: options.cwd ?? '/',
          maxBuffer: 64 * 1024 * 1024,
          timeout: 600_000,
        },
        (error, stdout, stderr) => {
          const seconds = (Date.now() - began) / 1000
          if (error === null || typeof error.code === 'number')
            return resolve({ status: Number(error?.code ?? 0), stdout, stderr, seconds })
          const how = error.signal ? `ended by ${error.signal}` : error.message
          resolve({
            status: 128,
            stdout,
            stderr: `${stderr}${how} after ${Math.round(seconds)} s\n`,
            seconds,
          })
        },
      )
      if (options.input !== undefined) child.stdin?.end(options.input)
    })
  }

  /** Runs it with --json and answers what it printed; throws what it said when it failed. */
  async json<T>(...args: string[]): Promise<T> {
    const { status, stdout, stderr } = await this.run([...args, '--json'])
    if (status !== 0) throw new Error(`floe ${args.join(' ')} ended with ${status}\n${stdout}\n${stderr}`)
    return JSON.parse(stdout) as T
  }

  /** What `./floe status --json` prints, without a process for each look; tests of the verb run it. */
  async status(): Promise<Status> {
    const { status } = await import('../src/command/status')
    return (await status(homeAt(this.directory))) as Status
  }

  async pidOf(name: string): Promise<number> {
    const pid = (await this.status()).processes.find((p) => p.name === name)?.pid
    if (!pid) throw new Error(`${name} does not run`)
    return pid
  }

  /** Stops everything and removes it, also where a test broke off in the middle. */
  async remove(): Promise<void> {
    await this.run(['down', '--instances'])
    const config = join(this.directory, 'config.json')
    const made = existsSync(config)
      ? (JSON.parse(readFileSync(config, 'utf8')) as {
          instancesDirectory: string
          users: Record<string, string> | null
        })
      : null
    rmSync(this.directory, { recursive: true, force: true })
    if (made?.instancesDirectory.startsWith('/var/lib/floe/'))
      rmSync(made.instancesDirectory, { recursive: true, force: true })
    const { group, ...users } = made?.users ?? {}
    for (const user of Object.values(users)) spawnSync('userdel', [user])
    if (group) spawnSync('groupdel', [group])
  }
}

/** Many looks are a command, which takes a quarter of a second of the processor that what is awaited needs. */
const FIRST_PAUSE_MS = 300
const LONGEST_PAUSE_MS = 1_000

/** Looks until the condition holds; throws with what was awaited when it does not by the deadline. */
export const until = async (
  what: string,
  condition: () => Promise<boolean> | boolean,
  deadlineMs = 60_000,
  everyMs: number | (() => number) = growingPauses(FIRST_PAUSE_MS, LONGEST_PAUSE_MS),
): Promise<void> => void (await waitUntil(what, condition, deadlineMs, everyMs))

export const alive = (pid: number): boolean => isRunning(readProcess(pid))

/** Ends a process at once; on a busy machine it lives on for a moment after the signal. */
export async function endAtOnce(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL')
  await until(`process ${pid} is gone`, () => !alive(pid))
}
