import { readFileSync } from 'node:fs'
import type { Installation } from '@floe/domain'
import { readProcess, TICKS_PER_SECOND } from '@floe/host/process'
import { userOf } from '@floe/host/process-facts'
import type { Command } from 'commander'
import { controlPostmaster } from '../control-database/control'
import { type ExternalState, externalState } from '../control-database/external'
import { shownAddress } from '../control-database/external-address'
import { currentHome, type Home, readInstallation } from '../installation/home'
import { runningInstances } from '../installation/instances'
import { namesOfUsers } from '../installation/os-user'
import { duration, printResult, table } from '../output'
import {
  liveRecord,
  type ProcessName,
  type ProcessRecord,
  type ProgramName,
  processesOf,
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
  /** The user it runs as. */
  user: string | null
}
export type StatusResult = {
  state: 'running' | 'degraded' | 'stopped' | 'not-set-up'
  home: string
  url: string | null
  enginePrefix: string | null
  processes: ProcessStatus[]
  /** One that Floe does not run, and whether its owner can log in; null where Floe runs it, as one of the processes. */
  externalControlDatabase: ({ address: string } & ExternalState) | null
  instancesRunning: string[]
  /** The user that each running instance runs as, by its name. */
  instanceUsers: Record<string, string>
  /** The user that instances share which have none of their own; null without root. */
  engineUser: string | null
  /** `one`: everything runs as one user, so that a superuser of any instance can reach all of it. */
  trustDomains: 'separate' | 'one'
}

/** Seconds since a process started, from the kernel's own account. */
function uptimeSeconds(pid: number): number | null {
  const stat = readProcess(pid)
  if (stat === null) return null
  const sinceBoot = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0])
  return Math.max(0, Math.round(sinceBoot - stat.startTicks / TICKS_PER_SECOND))
}

function portOf(installation: Installation | null, name: ProcessName): number | null {
  if (installation === null) return null
  return {
    'control-database': installation.controlDatabase.port,
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
  const url = installation?.controlDatabase.url ?? null
  const external = url === null ? null : externalState(home, url)
  const processes = await Promise.all(
    (installation === null ? processNames : processesOf(installation)).map(
      async (name): Promise<ProcessStatus> => {
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
          running === null
            ? supervisor === null
              ? 'stopped'
              : 'restarting'
            : answers
              ? 'running'
              : 'starting'
        return {
          name,
          state,
          pid: running?.pid ?? null,
          port: portOf(installation, name),
          uptimeSeconds: running === null ? null : uptimeSeconds(running.pid),
          user: null,
        }
      },
    ),
  )
  processes.unshift({
    name: 'supervisor',
    state: supervisor === null ? 'stopped' : 'running',
    pid: supervisor?.pid ?? null,
    port: null,
    uptimeSeconds: supervisor === null ? null : uptimeSeconds(supervisor.pid),
    user: null,
  })
  const instances = installation === null ? [] : runningInstances(home, installation)
  const uids = processes.map(({ pid }) => (pid === null ? null : userOf(pid)))
  const names = namesOfUsers([...uids, ...instances.map((i) => i.postmaster.uid)])
  processes.forEach((process, i) => {
    process.user = names.get(uids[i] ?? null) ?? null
  })
  const states = new Set(processes.map((p) => p.state))
  const reached = url === null ? null : { address: shownAddress(url), ...((await external) as ExternalState) }
  const state = overall(states)
  return {
    state:
      installation === null
        ? 'not-set-up'
        : state === 'running' && reached?.state === 'unreachable'
          ? 'degraded'
          : state,
    home: home.directory,
    url: installation?.webUrl ?? null,
    enginePrefix: installation?.enginePrefix ?? null,
    processes,
    externalControlDatabase: reached,
    instancesRunning: instances.map((instance) => instance.name),
    instanceUsers: Object.fromEntries(instances.map((i) => [i.name, names.get(i.postmaster.uid) ?? ''])),
    engineUser: installation?.engineUser ?? null,
    trustDomains: installation !== null && installation.users !== null ? 'separate' : 'one',
  }
}

/** Instances that were not yet given a user of their own. */
function sharedUser({ instanceUsers, engineUser }: StatusResult): string[] {
  const shared = Object.keys(instanceUsers).filter((name) => instanceUsers[name] === engineUser)
  return shared.length === 0
    ? []
    : [
        `users      ${shared.join(', ')}: not separated; ${shared.length === 1 ? 'its' : 'their'} superusers reach everything that runs as "${engineUser}".`,
        `           "./floe instance separate ${shared[0]}" gives it a user of its own, or reports what prevents that.`,
      ]
}

const formatExternal = (d: { address: string } & ExternalState) =>
  `${d.address}, not run by Floe, ${d.state}${d.because === null ? '' : `\n           ${d.because}`}`

function formatStatus(s: StatusResult): string {
  if (s.state === 'not-set-up') return `Floe is not set up in "${s.home}". Run "./floe up".`
  return [
    table(
      ['process', 'state', 'pid', 'port', 'user', 'up since'],
      s.processes.map((p) => [
        p.name,
        p.state,
        p.pid,
        p.port,
        p.user,
        p.uptimeSeconds === null ? null : duration(p.uptimeSeconds * 1000),
      ]),
    ),
    '',
    `console    ${s.url}`,
    ...(s.externalControlDatabase === null
      ? []
      : [`database   ${formatExternal(s.externalControlDatabase)}`]),
    `engine     ${s.enginePrefix}`,
    `home       ${s.home}`,
    `instances  ${
      s.instancesRunning.length === 0
        ? 'none running'
        : s.instancesRunning.map((name) => `${name} (${s.instanceUsers[name]})`).join(', ')
    }`,
    ...(s.trustDomains === 'one'
      ? [
          'users      one trust domain: everything runs as one user, so a superuser of any instance reaches',
          '           all of this Floe. Set up by root, each instance and each process gets a user of its own.',
        ]
      : sharedUser(s)),
  ].join('\n')
}

export function addStatus(program: Command): void {
  verb(
    program,
    'status',
    'show what runs',
    'Shows each process of this installation with its state, pid, port and uptime, and a control database that Floe does not run.',
  ).action(async ({ json }: { json?: boolean }) => {
    const result = await status(currentHome())
    printResult(json, result, () => formatStatus(result))
  })
}
