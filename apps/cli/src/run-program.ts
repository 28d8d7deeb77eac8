import { type SpawnOptions, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export type ProgramResult = { status: number; stdout: string; tail: string[] }

/** How many of the last lines are kept for an error message. */
const TAIL_LINES = 40

/**
 * Runs a program to its end. Each line of its output goes to `onLine`; standard output is answered whole. Never throws
 * for an exit status; a program that cannot be started ends with status 127.
 */
export function runProgram(
  file: string,
  args: string[],
  options: SpawnOptions & { onLine?: (line: string) => void; input?: string; signal?: AbortSignal } = {},
): Promise<ProgramResult> {
  const { onLine, input, ...spawnOptions } = options
  return new Promise((resolve) => {
    const tail: string[] = []
    const keep = (line: string) => {
      tail.push(line)
      if (tail.length > TAIL_LINES) tail.shift()
      onLine?.(line)
    }
    const child = spawn(file, args, {
      ...spawnOptions,
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    let stdout = ''
    const lines: Promise<void>[] = []
    for (const stream of [child.stdout, child.stderr]) {
      if (!stream) continue
      const reader = createInterface({ input: stream })
      reader.on('line', (line) => {
        if (stream === child.stdout) stdout += `${line}\n`
        keep(line)
      })
      lines.push(new Promise((done) => reader.once('close', () => done())))
    }
    child.once('error', (error) => {
      keep(error.message)
      resolve({ status: 127, stdout, tail })
    })
    child.once('close', async (code, signal) => {
      await Promise.all(lines)
      resolve({ status: code ?? (signal ? 128 : 1), stdout, tail })
    })
    if (input !== undefined) {
      child.stdin?.on('error', () => {})
      child.stdin?.end(input)
    }
  })
}
