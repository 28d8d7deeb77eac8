import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, readlinkSync, rmdirSync } from 'node:fs'
import { get } from 'node:https'
import { join } from 'node:path'
import { agentTls } from '@floe/agent-contract/client'
import { agentStart } from '@floe/host/agent-start'
import type { ThrowawayHome } from './throwaway-home'
import { waitUntil } from './wait'

/** It needs half a second of a processor, which a machine that is busy with engines may take long to give. */
const START_BOUND_MS = 60_000

/** Compiled code of a bundle, beside it; read, and written by what ends by itself. */
const compileCacheOf = (bundle: string) => `${bundle}.cache`

/**
 * Has the bundle of an agent or a controller compiled once for all of a suite, with the options that they are started with.
 * They are killed, so none of them would leave what it compiled behind; this one ends, for want of a home.
 */
export function compileOnce(bundle: string, options: readonly string[]): void {
  spawnSync(process.execPath, [...options, bundle], {
    env: {
      ...process.env,
      FLOE_HOME: `${bundle}.no-home`,
      NODE_OPTIONS: '',
      NODE_COMPILE_CACHE: compileCacheOf(bundle),
    },
    stdio: 'ignore',
  })
}

/** An agent process of a test: started from its bundle, killed like a real one. */
export class ThrowawayAgent {
  readonly home: ThrowawayHome
  readonly #bundle: string
  readonly #within: (command: readonly string[]) => string[]
  #child: ChildProcess | null = null
  /** Everything it printed, over all its lives. */
  output = ''

  /** @param within makes another command line of the agent's own, to start it in namespaces. */
  constructor(
    home: ThrowawayHome,
    bundle: string,
    within: (command: readonly string[]) => string[] = (command) => [...command],
  ) {
    this.home = home
    this.#bundle = bundle
    this.#within = within
  }

  get pid(): number {
    if (!this.#child?.pid) throw new Error('the agent is not running')
    return this.#child.pid
  }

  /** Starts it and waits until it answers. */
  async start(): Promise<void> {
    const child = this.startUnseen()
    const answers = async () => {
      if (child.exitCode !== null) throw new Error(`the agent ended: ${this.output}`)
      return this.#answers()
    }
    await waitUntil('the agent answers', answers, START_BOUND_MS)
  }

  /** Starts it without waiting for an answer that it may not be able to give. */
  startUnseen(): ChildProcess {
    const [file = '', ...args] = this.#within([process.execPath, ...agentStart.options, this.#bundle])
    const child = spawn(file, args, {
      env: {
        ...process.env,
        ...agentStart.environment,
        FLOE_HOME: this.home.home,
        NODE_OPTIONS: '',
        NODE_COMPILE_CACHE: compileCacheOf(this.#bundle),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.output += text
      })
    this.#child = child
    return child
  }

  /** Ends it by a signal and waits until it is gone. SIGKILL is what the tests are about. */
  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
    this.#child = null
  }

  #answers(): Promise<boolean> {
    return new Promise((resolve) => {
      const tls = agentTls(this.home.endpoint('read'))
      const request = get(
        `${this.home.agentUrl}/healthz`,
        { ...tls, agent: false, timeout: 1_000 },
        (response) => {
          response.resume()
          resolve(response.statusCode === 200)
        },
      )
      request.on('error', () => resolve(false))
      request.on('timeout', () => request.destroy())
    })
  }

  /** Ends the agent and every engine it started, then removes the directory. */
  async remove(): Promise<void> {
    await this.end()
    await endEnginesBelow(this.home.installation.instancesDirectory)
    this.home.remove()
  }
}

/** Ends engines by the pid in their postmaster.pid, each only while it really works in that data directory. */
export async function endEnginesBelow(instancesDirectory: string): Promise<void> {
  if (!existsSync(instancesDirectory)) return
  for (const entry of readdirSync(instancesDirectory, { recursive: true, withFileTypes: true })) {
    if (entry.name !== 'postmaster.pid') continue
    const pid = Number(readFileSync(join(entry.parentPath, entry.name), 'utf8').split('\n')[0])
    const works = () => {
      try {
        return readlinkSync(`/proc/${pid}/cwd`) === entry.parentPath
      } catch {
        return false
      }
    }
    if (!works()) continue
    const groups = limitGroupsOf(pid)
    process.kill(pid, 'SIGQUIT')
    await waitUntil(`engine ${pid} ends`, () => !works())
    // the last of its processes ends after the postmaster
    await waitUntil(`the groups of engine ${pid} are removed`, () => groups.every(removed))
  }
}

/** Directories of the cgroups that the agent made for an engine: nobody removes them when the agent ends first. */
function limitGroupsOf(pid: number): string[] {
  const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8').matchAll(/^\d+:(\w+):(.*\/floe\/[^/]+)$/gm)
  return [...groups].flatMap(([, controller, group]) => {
    const directory = `/sys/fs/cgroup/${controller}${group}`
    return [directory, `${directory}-background`].filter((path) => existsSync(path))
  })
}

function removed(directory: string): boolean {
  try {
    rmdirSync(directory)
  } catch {
    return !existsSync(directory)
  }
  return true
}
