import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { secretFiles } from '@floe/domain'
import { z } from 'zod'
import { type Home, writeWhole } from '../installation/home'
import { identify, isAlive, type ProcessIdentity } from './identity'

/** Floe's processes in the order in which they start; they stop in the reverse order. */
export const processNames = ['control-database', 'agent', 'controller', 'web'] as const
export type ProcessName = (typeof processNames)[number]
/** Those that are a program of this checkout. */
export const programNames = ['agent', 'controller', 'web'] as const
export type ProgramName = (typeof programNames)[number]

/**
 * What each program is started with, relative to the checkout, the file that changes with every build of it, and Node's
 * options. The agent shares its host with the instances: a small young generation keeps it at about 100 MB with 20 of them.
 */
export const programs: Record<ProgramName, { entry: string; built: string; options: string[] }> = {
  agent: {
    entry: 'apps/agent/dist/main.js',
    built: 'apps/agent/dist/main.js',
    options: ['--max-semi-space-size=2', '--max-old-space-size=128'],
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
})
export type ProcessRecord = z.infer<typeof StoredRecord>

const recordFile = (home: Home, name: string) => join(home.run, `${name}.json`)

export function writeRecord(home: Home, name: string, record: ProcessRecord): void {
  writeWhole(recordFile(home, name), `${JSON.stringify(record)}\n`, 0o644)
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
export function currentMark(home: Home, checkout: string, name: ProgramName): string {
  const hash = createHash('sha256')
  const authority = join(home.secrets, secretFiles.authority)
  for (const file of [join(checkout, programs[name].built), home.configFile, authority]) {
    try {
      hash.update(readFileSync(file))
    } catch {
      hash.update('missing')
    }
  }
  return hash.digest('hex').slice(0, 16)
}

/** The variable that says which program of an installation a process is; programs change their own command line. */
export const PROCESS_VARIABLE = 'FLOE_PROCESS'

/**
 * A program of this installation that runs though no record names it (the record was lost, or its writer was killed
 * before it wrote): found by what it was started with. Of several the oldest; the others are its children.
 */
export function findUnrecorded(home: Home, name: ProgramName): ProcessIdentity | null {
  let oldest: ProcessIdentity | null = null
  for (const pid of readdirSync('/proc').filter((n) => /^\d+$/.test(n))) {
    try {
      // engines inherit the agent's variables, but are no Node
      if (
        !readlinkSync(`/proc/${pid}/exe`)
          .replace(/ \(deleted\)$/, '')
          .endsWith('/node')
      )
        continue
      if (statSync(`/proc/${pid}`).uid !== process.getuid?.()) continue
      const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
      if (
        !variables.includes(`FLOE_HOME=${home.directory}`) ||
        !variables.includes(`${PROCESS_VARIABLE}=${name}`)
      )
        continue
      const found = identify(Number(pid))
      if (found !== null && (oldest === null || found.startTicks < oldest.startTicks)) oldest = found
    } catch {
      // gone, or not ours to look at
    }
  }
  return oldest
}

/** The process of a name, recorded or not; null when none runs. */
export function runningProgram(home: Home, name: ProgramName): ProcessRecord | null {
  const recorded = liveRecord(home, name)
  if (recorded !== null) return recorded
  const found = findUnrecorded(home, name)
  return found === null ? null : { ...found, startedAt: Date.now(), mark: 'unknown' }
}
