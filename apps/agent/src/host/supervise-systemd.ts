import { rmSync } from 'node:fs'
import { fault, type InstanceLimits } from '@floe/domain'
import { readKernelFile } from '@floe/host/kernel-file'
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
 * engine's immediate shutdown and no failure of the unit. What starts before another unit is stopped after it: an agent
 * that still looked while the machine goes down would take an engine's end for somebody's wish.
 */
export function systemdArguments(p: EngineProcess, bootUnit: string | null = null): string[] {
  const properties = [
    'Type=notify',
    'NotifyAccess=main',
    `User=${p.user.name}`,
    ...sandbox(p.writableDirectories),
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
    // the agent sets limits of I/O in groups of its own below the unit's
    'Delegate=yes',
    ...limitProperties(p.limits),
    ...(bootUnit === null ? [] : [`Before=${bootUnit}`]),
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

/** Limits of processors and memory as properties of a unit; one that is not set takes an earlier one away. */
export const limitProperties = ({ cpu, memoryHigh, memoryMax }: InstanceLimits): string[] => [
  `CPUQuota=${cpu === null ? '' : `${Math.round(cpu * 1_000) / 10}%`}`,
  `MemoryHigh=${memoryHigh ?? 'infinity'}`,
  `MemoryMax=${memoryMax ?? 'infinity'}`,
]

/** Whether /proc/PID/cgroup names the unit: a part of a path of any hierarchy, below whatever systemd itself runs in. */
export const isOfUnit = (cgroups: string, unit: string): boolean =>
  cgroups.split('\n').some((line) => line.split('/').includes(unit))

/**
 * What the engine's unit may not do. Data directories, WAL and tablespaces may lie anywhere, so of the file system only
 * what belongs to the system is closed: /usr, /boot and /etc, and homes unless its own directories lie there.
 */
function sandbox(writable: readonly string[]): string[] {
  const inHomes = writable.some((path) => /^\/(home|root|run\/user)(\/|$)/.test(path))
  const inTmp = writable.some((path) => /^\/(var\/)?tmp(\/|$)/.test(path))
  return [
    'NoNewPrivileges=yes',
    'CapabilityBoundingSet=',
    'AmbientCapabilities=',
    'ProtectSystem=full',
    ...(inHomes ? [] : ['ProtectHome=yes']),
    ...(inTmp ? [] : ['PrivateTmp=yes']),
    'PrivateDevices=yes',
    'ProtectKernelTunables=yes',
    'ProtectKernelModules=yes',
    'ProtectKernelLogs=yes',
    'ProtectControlGroups=yes',
    'ProtectClock=yes',
    'ProtectHostname=yes',
    'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
    'RestrictNamespaces=yes',
    'RestrictRealtime=yes',
    'RestrictSUIDSGID=yes',
    'LockPersonality=yes',
    'SystemCallArchitectures=native',
    'UMask=0077',
  ]
}

/** Engine processes as transient units of the system's systemd, each with a cgroup of its own. */
export class Systemd implements Supervision {
  readonly kind = 'systemd'
  readonly #run: RunCommand
  readonly #bootUnit: string | null

  /** @param bootUnit is the unit that starts Floe with the machine: a shutdown ends it, and the agent with it, before engines. */
  constructor(bootUnit: string | null = null, run: RunCommand = runCommand) {
    this.#run = run
    this.#bootUnit = bootUnit
  }

  async start(p: EngineProcess): Promise<void> {
    // a unit that failed keeps its name until it is reset
    await this.forget(p.instanceId)
    rmSync(p.outputFile, { force: true })
    const words = systemdArguments(p, this.#bootUnit)
    const r = await this.#run('systemd-run', words, { timeoutMs: 30_000 })
    if (r.status !== 0)
      throw fault('host.unit_not_started', `could not start unit "${unitName(p.instanceId)}"`, {
        detail: r.stderr.trim() || `systemd-run ended with status ${r.status ?? r.signal}.`,
      })
  }

  /** Nobody but systemd moves a process out of its unit's cgroup. */
  owns(pid: number, instanceId: string): boolean {
    try {
      return isOfUnit(readKernelFile(`/proc/${pid}/cgroup`), unitName(instanceId))
    } catch {
      return false
    }
  }

  async forget(instanceId: string): Promise<void> {
    await this.#run('systemctl', ['reset-failed', unitName(instanceId)], { timeoutMs: 30_000 }).catch(
      () => {},
    )
  }
}
