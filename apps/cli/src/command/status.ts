import { readFileSync } from 'node:fs'
import type { Installation } from '@floe/domain'
import type { Command } from 'commander'
import { controlPostmaster } from '../control-database/control'
import { currentHome, type Home, readInstallation } from '../installation/home'
import { runningInstances } from '../installation/instances'
import { duration, printResult, table } from '../output'
import { readStat } from '../process/identity'
import {
  liveRecord,
  type ProcessName,
  type ProcessRecord,
  type ProgramName,
  processNames,
  runningProgram,
} from '../process/records'
import { answers } from '../up/answers'
import { verb } from './verb'

/**
 * `running`: it answers. `starting`: its process runs but does not answer (yet). `restarting`: it is gone and the
 * supervisor will start it again. `stopped`: it is gone and nobody will.
 */
export type ProcessState = 'running' | 'starting' | 'restarting' | 'stopped'
export type ProcessStatus = {
  name: string
  state: ProcessState
  pid: number | null
  port: number | null
  uptimeSeconds: number | null
}
export type StatusResult = {
  state: 'running' | 'degraded' | 'stopped' | 'not-set-up'
  home: string
  url: string | null
  enginePrefix: string | null
  processes: ProcessStatus[]
  instancesRunning: string[]
}

/** Seconds since a process started, from the kernel's own account. */
function uptimeSeconds(pid: number): number | null {
  const stat = readStat(pid)
  if (stat === null) return null
  const sinceBoot = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0])
  return Math.max(0, Math.round(sinceBoot - stat.startTicks / 100))
}

function portOf(installation: Installation | null, name: ProcessName): number | null {
  if (installation === null) return null
  return {
    'control-database': installation.controlPort,
    agent: installation.agentPort,
    controller: null,
    web: installation.webPort,
  }[name]
}

/** One word for all: `running` or `stopped` when every process is, else `degraded`. */
function overall(states: Set<ProcessState>): 'running' | 'degraded' | 'stopped' {
  if (states.size > 1) return 'degraded'
  return states.has('running') ? 'running' : states.has('stopped') ? 'stopped' : 'degraded'
}

export async function status(home: Home): Promise<StatusResult> {
  const installation = readInstallation(home)
  const supervisor = liveRecord(home, 'supervisor')
  const answering = async (name: ProgramName) =>
    installation !== null && (await answers[name](home, installation).catch(() => false))
  // the controller is asked through web; while web is silent only its process can be seen
  const web = answering('web')
  const processes = await Promise.all(
    processNames.map(async (name): Promise<ProcessStatus> => {
      let running: Pick<ProcessRecord, 'pid'> | null = null
      let answers = true
      if (name === 'control-database') running = installation && controlPostmaster(installation)
      else {
        running = runningProgram(home, name)
        if (running !== null)
          answers =
            name === 'web' ? await web : (name === 'controller' && !(await web)) || (await answering(name))
      }
      const state: ProcessState =
        running === null ? (supervisor === null ? 'stopped' : 'restarting') : answers ? 'running' : 'starting'
      return {
        name,
        state,
        pid: running?.pid ?? null,
        port: portOf(installation, name),
        uptimeSeconds: running === null ? null : uptimeSeconds(running.pid),
      }
    }),
  )
  processes.unshift({
    name: 'supervisor',
    state: supervisor === null ? 'stopped' : 'running',
    pid: supervisor?.pid ?? null,
    port: null,
    uptimeSeconds: supervisor === null ? null : uptimeSeconds(supervisor.pid),
  })
  const states = new Set(processes.map((p) => p.state))
  return {
    state: installation === null ? 'not-set-up' : overall(states),
    home: home.directory,
    url: installation?.webUrl ?? null,
    enginePrefix: installation?.enginePrefix ?? null,
    processes,
    instancesRunning:
      installation === null ? [] : runningInstances(home, installation).map((instance) => instance.name),
  }
}

function inWords(s: StatusResult): string {
  if (s.state === 'not-set-up') return `Floe is not set up in "${s.home}". Run "./floe up".`
  return [
    table(
      ['process', 'state', 'pid', 'port', 'up since'],
      s.processes.map((p) => [
        p.name,
        p.state,
        p.pid,
        p.port,
        p.uptimeSeconds === null ? null : duration(p.uptimeSeconds * 1000),
      ]),
    ),
    '',
    `console    ${s.url}`,
    `engine     ${s.enginePrefix}`,
    `home       ${s.home}`,
    `instances  ${s.instancesRunning.length === 0 ? 'none running' : s.instancesRunning.join(', ')}`,
  ].join('\n')
}

export function addStatus(program: Command): void {
  verb(
    program,
    'status',
    'show what runs',
    'Shows each process of this installation with its state, pid, port and uptime.',
  ).action(async ({ json }: { json?: boolean }) => {
    const result = await status(currentHome())
    printResult(json, result, () => inWords(result))
  })
}
