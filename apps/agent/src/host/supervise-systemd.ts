import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fault, type InstanceLimits } from '@floe/domain'
import { readKernelFile } from '@floe/host/kernel-file'
import { unitItem, unitLine, unitWord } from '@floe/host/unit-file'
import template from './floe-instance@.service'
import { type CommandResult, engineEnvironment, runCommand } from './run-command'
import type { EngineProcess, Supervision } from './supervision'

export type RunCommand = (
  file: string,
  args: readonly string[],
  options: { timeoutMs: number },
) => Promise<CommandResult>

/** The unit of an instance where Floe is no package: systemd-run makes it. */
export function unitName(instanceId: string): string {
  return `floe-instance-${instanceId}.service`
}

const TEMPLATE = 'floe-instance@.service'

/** The unit of an instance where Floe's package has installed what all of them are made from. */
export const packagedUnitName = (instanceId: string): string => `floe-instance@${instanceId}.service`

/** Those of what all units have that are properties: systemd-run is given them one by one, from the same file. */
const commonProperties = template
  .slice(template.indexOf('[Service]'))
  .split('\n')
  .filter((line) => /^[A-Z]\w*=/.test(line) && !line.startsWith('Exec'))

/** What an engine's unit has of its own; the directories that it writes in decide how much of the rest is closed to it. */
function ownProperties(p: EngineProcess): string[] {
  const writes = (places: RegExp) => p.writableDirectories.some((path) => places.test(path))
  return [
    `User=${p.user.name}`,
    `WorkingDirectory=${p.directory}`,
    `StandardOutput=append:${p.outputFile}`,
    `StandardError=append:${p.outputFile}`,
    ...(writes(/^\/(home|root|run\/user)(\/|$)/) ? [] : ['ProtectHome=yes']),
    ...(writes(/^\/(var\/)?tmp(\/|$)/) ? [] : ['PrivateTmp=yes']),
  ]
}

const environment = Object.entries({
  ...engineEnvironment,
  PG_OOM_ADJUST_FILE: '/proc/self/oom_score_adj',
  PG_OOM_ADJUST_VALUE: '0',
})

/**
 * Arguments of systemd-run for one engine. `--no-block`: readiness is watched by the agent, the same way for every
 * supervision. What starts before another unit is stopped after it: an agent that still looked while the machine goes down
 * would take an engine's end for somebody's wish.
 */
export function systemdArguments(p: EngineProcess, bootUnit: string | null = null): string[] {
  const properties = [
    ...commonProperties,
    ...ownProperties(p),
    ...limitProperties(p.limits),
    ...(bootUnit === null ? [] : [`Before=${bootUnit}`]),
  ]
  return [
    '--quiet',
    '--no-block',
    '--collect',
    `--unit=${unitName(p.instanceId)}`,
    `--description=Floe instance ${p.title}`,
    ...properties.map((v) => `--property=${v}`),
    ...environment.map(([name, value]) => `--setenv=${name}=${value}`),
    '--',
    p.file,
    ...p.args,
  ]
}

/** The order by which one engine is started from the template: what systemdArguments say, as a drop-in. */
function orderText(p: EngineProcess, bootUnit: string | null): string {
  return `# Written by Floe's agent, which writes it again at each start.
[Unit]
Description=${unitLine(`Floe instance ${p.title}`)}
${bootUnit === null ? '' : `Before=${bootUnit}\n`}
[Service]
${[...ownProperties(p).map(unitLine), ...limitProperties(p.limits)].join('\n')}
Environment=${environment.map(([name, value]) => unitItem(`${name}=${value}`)).join(' ')}
ExecStart=${[p.file, ...p.args].map(unitWord).join(' ')}
`
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

/** Drop-ins of a running system, and those that systemd writes itself for `set-property --runtime`. */
const DROP_INS = '/run/systemd/system'
const OWN_DROP_INS = '/run/systemd/system.control'

/**
 * Engine processes as units of the system's systemd, each with a cgroup of its own: of the package's template where that is
 * installed, so that a person sees and can change what they are, else transient ones. An engine that began as one kind
 * stays it until it is started again.
 */
export class Systemd implements Supervision {
  readonly kind = 'systemd'
  readonly #run: RunCommand
  readonly #bootUnit: string | null
  readonly #dropIns: string

  /** @param bootUnit is the unit that starts Floe with the machine: a shutdown ends it, and the agent with it, before engines. */
  constructor(bootUnit: string | null = null, run: RunCommand = runCommand, dropIns = DROP_INS) {
    this.#run = run
    this.#bootUnit = bootUnit
    this.#dropIns = dropIns
  }

  async start(p: EngineProcess): Promise<void> {
    // a unit that failed keeps its name until it is reset
    await this.forget(p.instanceId)
    rmSync(p.outputFile, { force: true })
    const { status } = await this.#run('systemctl', ['cat', TEMPLATE], { timeoutMs: 30_000 })
    if (status === 0) await this.#startByOrder(p)
    else await this.#must(unitName(p.instanceId), 'systemd-run', systemdArguments(p, this.#bootUnit))
  }

  async #startByOrder(p: EngineProcess): Promise<void> {
    const unit = packagedUnitName(p.instanceId)
    const directory = join(this.#dropIns, `${unit}.d`)
    mkdirSync(directory, { recursive: true, mode: 0o755 })
    // what a person sets for the units of all instances is a 50-….conf and comes after it; so do limits that change meanwhile
    writeFileSync(join(directory, '10-floe.conf'), orderText(p, this.#bootUnit), { mode: 0o644 })
    writeFileSync(join(directory, 'order'), '')
    await this.#must(unit, 'systemctl', ['daemon-reload'])
    await this.#must(unit, 'systemctl', ['start', '--no-block', unit])
  }

  async #must(unit: string, file: string, args: string[]): Promise<void> {
    const r = await this.#run(file, args, { timeoutMs: 30_000 })
    if (r.status !== 0)
      throw fault('host.unit_not_started', `could not start unit "${unit}"`, {
        detail: r.stderr.trim() || `${file} ended with status ${r.status ?? r.signal}.`,
      })
  }

  /** Nobody but systemd moves a process out of its unit's cgroup. */
  owns(pid: number, instanceId: string): boolean {
    try {
      const cgroups = readKernelFile(`/proc/${pid}/cgroup`)
      return [unitName(instanceId), packagedUnitName(instanceId)].some((unit) => isOfUnit(cgroups, unit))
    } catch {
      return false
    }
  }

  async forget(instanceId: string): Promise<void> {
    const units = [unitName(instanceId), packagedUnitName(instanceId)]
    await this.#run('systemctl', ['reset-failed', ...units], { timeoutMs: 30_000 }).catch(() => {})
    // limits of an earlier start would count at this one
    for (const place of [this.#dropIns, OWN_DROP_INS])
      rmSync(join(place, `${packagedUnitName(instanceId)}.d`), { recursive: true, force: true })
  }
}
