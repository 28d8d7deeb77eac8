import { rmSync } from 'node:fs'
import { fault } from '@floe/domain'
import { type CommandResult, engineEnvironment, runCommand } from './run-command'
import type { EngineProcess, Supervision } from './supervision'

export type RunCommand = (
  file: string,
  args: readonly string[],
  options: { timeoutMs: number },
) => Promise<CommandResult>

export function unitName(instanceId: string): string {
  return `floe-instance-${instanceId}.service`
}

/**
 * Arguments of systemd-run for one engine. `--no-block`: readiness is watched by the agent, the same way for both
 * supervisions. KillMode=mixed sends a stop of the unit (fast shutdown) to the postmaster only. Exit by SIGQUIT is the
 * engine's immediate shutdown and no failure of the unit.
 */
export function systemdArguments(p: EngineProcess): string[] {
  const properties = [
    'Type=notify',
    'NotifyAccess=main',
    `User=${p.user.name}`,
    `WorkingDirectory=${p.directory}`,
    `StandardOutput=append:${p.outputFile}`,
    `StandardError=append:${p.outputFile}`,
    'Restart=no',
    'KillMode=mixed',
    'KillSignal=SIGINT',
    'TimeoutStartSec=infinity',
    'TimeoutStopSec=infinity',
    'OOMScoreAdjust=-900',
    'OOMPolicy=continue',
    'LimitNOFILE=65536',
    'TasksMax=infinity',
  ]
  const environment = {
    ...engineEnvironment,
    PG_OOM_ADJUST_FILE: '/proc/self/oom_score_adj',
    PG_OOM_ADJUST_VALUE: '0',
  }
  return [
    '--quiet',
    '--no-block',
    '--collect',
    `--unit=${unitName(p.instanceId)}`,
    `--description=Floe instance ${p.title}`,
    '--slice=floe.slice',
    ...properties.map((v) => `--property=${v}`),
    ...Object.entries(environment).map(([name, value]) => `--setenv=${name}=${value}`),
    '--',
    p.file,
    ...p.args,
  ]
}

/** Engine processes as transient units of the system's systemd, each with a cgroup of its own. */
export class Systemd implements Supervision {
  readonly kind = 'systemd'
  readonly #run: RunCommand

  constructor(run: RunCommand = runCommand) {
    this.#run = run
  }

  async start(p: EngineProcess): Promise<void> {
    // a unit that failed keeps its name until it is reset
    await this.forget(p.instanceId)
    rmSync(p.outputFile, { force: true })
    const r = await this.#run('systemd-run', systemdArguments(p), { timeoutMs: 30_000 })
    if (r.status !== 0)
      throw fault('host.unit_not_started', `could not start unit "${unitName(p.instanceId)}"`, {
        detail: r.stderr.trim() || `systemd-run ended with status ${r.status ?? r.signal}.`,
      })
  }

  async forget(instanceId: string): Promise<void> {
    await this.#run('systemctl', ['reset-failed', unitName(instanceId)], { timeoutMs: 30_000 }).catch(
      () => {},
    )
  }
}
