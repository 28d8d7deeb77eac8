import { spawn } from 'node:child_process'
import { closeSync, constants, openSync, rmSync, writeFileSync } from 'node:fs'
import { confined } from './confined'
import { engineEnvironment } from './run-command'
import type { EngineProcess, Supervision } from './supervision'

/**
 * The postmaster must be the last process that the kernel kills for want of memory, its backends may be the first:
 * PostgreSQL resets the value in them when these two variables are set.
 */
const POSTMASTER_OOM_SCORE = '-900'
const oomEnvironment = { PG_OOM_ADJUST_FILE: '/proc/self/oom_score_adj', PG_OOM_ADJUST_VALUE: '0' }

/** Engine processes as children in a session of their own: they get no signal of the agent's and survive it. */
export class Detached implements Supervision {
  readonly kind = 'detached'

  async start(p: EngineProcess): Promise<void> {
    rmSync(p.outputFile, { force: true })
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND
    const output = openSync(p.outputFile, flags, 0o600)
    try {
      const [file, ...args] = entering(p.entrances, confined(p.user, [p.file, ...p.args]))
      const child = spawn(file, args, {
        cwd: p.directory,
        env: { ...engineEnvironment, ...oomEnvironment },
        stdio: ['ignore', output, output],
        detached: true,
      })
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve)
        child.once('error', reject)
      })
      child.unref()
      protect(child.pid)
    } finally {
      closeSync(output)
    }
  }

  /** Nothing keeps them together. */
  owns(): boolean {
    return false
  }

  async forget(): Promise<void> {}
}

/**
 * The command that enters cgroups and becomes another one: what a process uses from its first moment on is counted there. A
 * group that cannot be entered keeps no engine from starting; the one that looks after it next puts it there.
 */
function entering(entrances: readonly string[], command: [string, ...string[]]): [string, ...string[]] {
  if (entrances.length === 0) return command
  const script =
    'n=$1; shift; while [ "$n" -gt 0 ]; do { echo $$ >"$1"; } 2>/dev/null || :; shift; n=$((n-1)); done; exec "$@"'
  return ['/bin/sh', '-c', script, 'sh', String(entrances.length), ...entrances, ...command]
}

function protect(pid: number | undefined): void {
  try {
    if (pid) writeFileSync(`/proc/${pid}/oom_score_adj`, POSTMASTER_OOM_SCORE)
  } catch {
    // only root may lower it; without root the engine is as safe as any other process
  }
}
