import { spawn } from 'node:child_process'
import { confined } from './confined'
import type { EngineUser } from './engine-user'

export type CommandResult = { status: number | null; signal: string | null; stdout: string; stderr: string }
export type CommandOptions = {
  /** Who it runs as, confined as an instance is (confined.ts); without one it is the agent's own user, with all it may do. */
  user?: EngineUser
  directory?: string
  input?: string
  timeoutMs?: number
  signal?: AbortSignal | undefined
  /** Sees each chunk of standard output and standard error as it comes. */
  onOutput?: (text: string) => void
  /** More of standard output, and of standard error, is dropped. */
  outputMaxBytes?: number
}

/** What engine commands and engines see of the environment: nothing of the agent's own. */
export const engineEnvironment = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C.UTF-8', TZ: 'UTC' }

const OUTPUT_MAX_BYTES = 1 << 20

/** Sessions of the commands that run now, each named by the pid that began it: what works in them are the agent's own tools. */
export const commandSessions = (): ReadonlySet<number> => sessions
const sessions = new Set<number>()

/**
 * Runs a command to its end in a process group of its own; on timeout or abort the whole group is killed. Output beyond
 * 1 MB each is dropped. As a user it has no more rights than that user's instance; setpriv becomes the command.
 */
export function runCommand(
  file: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const [program, ...words] = options.user ? confined(options.user, [file, ...args]) : [file, ...args]
    const child = spawn(program, words, {
      cwd: options.directory ?? '/',
      env: engineEnvironment,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    })
    const session = child.pid
    if (session !== undefined) sessions.add(session)
    const { outputMaxBytes = OUTPUT_MAX_BYTES } = options
    let stdout = ''
    let stderr = ''
    const end = () => {
      try {
        if (child.pid) process.kill(-child.pid, 'SIGKILL')
      } catch {
        // it ended on its own in the meantime
      }
    }
    const timer = options.timeoutMs ? setTimeout(end, options.timeoutMs) : undefined
    options.signal?.addEventListener('abort', end, { once: true })
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < outputMaxBytes) stdout += text
      options.onOutput?.(text)
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (stderr.length < outputMaxBytes) stderr += text
      options.onOutput?.(text)
    })
    child.on('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    child.on('close', (status, signal) => {
      if (session !== undefined) sessions.delete(session)
      clearTimeout(timer)
      options.signal?.removeEventListener('abort', end)
      resolve({ status, signal, stdout, stderr })
    })
    // a command that ends early closes its input; what it says on standard error matters, not EPIPE
    child.stdin.on('error', () => {})
    child.stdin.end(options.input ?? '')
  })
}
