import { createHash } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Installation, programHome, secretFiles } from '@floe/domain'
import { agentStart } from '@floe/host/agent-start'
import { identify, isAlive, type ProcessIdentity } from '@floe/host/process'
import { listPids, programFileOf, userOf } from '@floe/host/process-facts'
import { replaceFile } from '@floe/host/replace-file'
import { z } from 'zod'
import { type Home, isInstallation, readConfiguration } from '../installation/home'
import { findUser } from '../installation/os-user'

/** Floe's processes in the order in which they start; they stop in the reverse order. */
export const processNames = ['control-database', 'agent', 'controller', 'web'] as const
export type ProcessName = (typeof processNames)[number]
/** Those that this machine runs: an enrolled host has only its agent, and a control database may be somebody else's. */
export const processesOf = (installation: Installation | null): readonly ProcessName[] =>
  installation === null
    ? ['agent']
    : processNames.filter((name) => name !== 'control-database' || installation.controlDatabase.url === null)
/** Those that are a program of this checkout. */
export const programNames = ['agent', 'controller', 'web'] as const
export type ProgramName = (typeof programNames)[number]

/**
 * What each program is started with, relative to the checkout, the file that changes with every build of it, and Node's
 * options.
 */
export const programs: Record<
  ProgramName,
  { entry: string; built: string; options: string[]; environment?: Record<string, string> }
> = {
  agent: {
    entry: 'apps/agent/dist/main.js',
    built: 'apps/agent/dist/main.js',
    ...agentStart,
  },
  controller: {
    entry: 'apps/controller/dist/main.js',
    built: 'apps/controller/dist/main.js',
    options: ['--enable-source-maps'],
  },
  web: { entry: 'apps/web/start.mjs', built: 'apps/web/.next/BUILD_ID', options: [] },
}

const StoredRecord = z.object({
  pid: z.number().int(),
  startTicks: z.number().int(),
  bootId: z.string(),
  startedAt: z.number(),
  /** Names the build and the configuration it was started with. */
  mark: z.string(),
  /** Name of the copy of the build that it runs from, where it runs from one. */
  copy: z.string().optional(),
})
export type ProcessRecord = z.infer<typeof StoredRecord>

const recordFile = (home: Home, name: string) => join(home.run, `${name}.json`)

export function writeRecord(home: Home, name: string, record: ProcessRecord): void {
  replaceFile(recordFile(home, name), `${JSON.stringify(record)}\n`, { mode: 0o644 })
}

export function removeRecord(home: Home, name: string): void {
  rmSync(recordFile(home, name), { force: true })
}

/** The record of a process that runs; null when there is none or its process is gone, whatever has its pid now. */
export function liveRecord(home: Home, name: string): ProcessRecord | null {
  try {
    const record = StoredRecord.parse(JSON.parse(readFileSync(recordFile(home, name), 'utf8')))
    return isAlive(record) ? record : null
  } catch {
    return null
  }
}

/** Mark of what a program would be started with now: its build, config.json and whose certificates it accepts. */
export function currentMark(home: Home, directory: string, name: ProgramName): string {
  const hash = createHash('sha256')
  const authority = join(home.secrets, secretFiles.authority)
  for (const file of [join(directory, programs[name].built), home.configFile, authority]) {
    try {
      hash.update(readFileSync(file))
    } catch {
      hash.update('missing')
    }
  }
  return hash.digest('hex').slice(0, 16)
}

/** Where a program of an installation has its home and who it runs as; by number, as the kernel reports it. */
export type Whereabouts = { home: string; uid: number }

/** The variable that says which program of an installation a process is; programs change their own command line. */
export const PROCESS_VARIABLE = 'FLOE_PROCESS'

/**
 * A program of this installation that runs though no record names it (the record was lost, or its writer was killed
 * before it wrote): found by what it was started with, and only as the user that it runs as; somebody else may start what
 * he likes with these variables. Of several the oldest; the others are its children.
 */
export function findUnrecorded(wanted: Whereabouts, name: ProgramName): ProcessIdentity | null {
  let oldest: ProcessIdentity | null = null
  for (const pid of listPids()) {
    try {
      // engines inherit the agent's variables, but are no Node
      if (!programFileOf(pid)?.endsWith('/node') || userOf(pid) !== wanted.uid) continue
      const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
      if (
        !variables.includes(`FLOE_HOME=${wanted.home}`) ||
        !variables.includes(`${PROCESS_VARIABLE}=${name}`)
      )
        continue
      const found = identify(pid)
      if (found !== null && (oldest === null || found.startTicks < oldest.startTicks)) oldest = found
    } catch {
      // gone, or not ours to look at
    }
  }
  return oldest
}

/**
 * Where a program is to be looked for: as it is started now, and as an earlier version started it, with FLOE_HOME as its
 * home and as the one who runs the launcher.
 */
function whereaboutsOf(home: Home, name: ProgramName): Whereabouts[] {
  const own = process.getuid?.() ?? 0
  const former = { home: home.directory, uid: own }
  const installation = name === 'agent' ? null : readInstallationIfThere(home)
  if (installation === null || name === 'agent') return [former]
  const user = installation.users?.[name]
  const uid = user === undefined ? own : findUser(user)?.switchTo?.uid
  return uid === undefined ? [former] : [{ home: programHome(installation, name), uid }, former]
}

function readInstallationIfThere(home: Home): Installation | null {
  try {
    const configuration = readConfiguration(home)
    return isInstallation(configuration) ? configuration : null
  } catch {
    return null
  }
}

/** The process of a name, recorded or not; null when none runs. */
export function runningProgram(home: Home, name: ProgramName): ProcessRecord | null {
  const recorded = liveRecord(home, name)
  if (recorded !== null) return recorded
  for (const wanted of whereaboutsOf(home, name)) {
    const found = findUnrecorded(wanted, name)
    if (found !== null) return { ...found, startedAt: Date.now(), mark: 'unknown' }
  }
  return null
}
