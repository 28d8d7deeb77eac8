import { fault } from '@floe/domain'
import { packaged, packagedEngine } from '../installation/package'
import type { ProgramName } from '../process/records'
import type { Progress, Step } from '../progress/progress'
import { buildEngine, enginePrefix } from './engine'
import { canInstallPackages, installPackages, missingEnginePackages } from './system-packages'
import { buildWorkspace, workspaceIsBuilt } from './workspace-build'

export type Preparation = {
  /** What is left to do: packages, engine, build. Empty on a machine that has it all. */
  steps: Step[]
  /** The engine's prefix, once the steps have run. */
  prefix(): string
  /** False where packages are missing that this process cannot install. */
  possible: boolean
  /** Says which packages those are; never answers. */
  refuse(verb: string): never
}

/** Finds out what a machine needs before these programs can run. */
export async function planPreparation(
  programs: readonly ProgramName[],
  progress: Progress,
): Promise<Preparation> {
  if (packaged() !== null) return inPackages()
  let missing = await missingEnginePackages()
  let prefix: string | null = null
  if (missing.length === 0 || !canInstallPackages()) prefix = await enginePrefix()
  const packagesNeeded = missing.length > 0 && prefix === null && canInstallPackages()
  const steps: Step[] = []
  if (packagesNeeded)
    steps.push({
      name: 'packages',
      title: 'system packages',
      seconds: 60,
      run: async (report) => {
        await installPackages(missing, report)
        missing = []
      },
    })
  else if (missing.length > 0 && prefix === null)
    progress.say(`these packages are missing: ${missing.join(' ')}`)
  const possible = prefix !== null || missing.length === 0 || packagesNeeded
  if (prefix === null && possible)
    steps.push({
      name: 'engine',
      title: 'engine',
      seconds: 200,
      run: async (report) => {
        prefix = await buildEngine('release', report)
      },
    })
  if (!workspaceIsBuilt(programs))
    steps.push({
      name: programs.includes('web') ? 'console-build' : 'agent-build',
      title: programs.includes('web') ? 'console' : 'agent',
      seconds: programs.includes('web') ? 45 : 5,
      run: (report) => buildWorkspace(report, programs),
    })
  return {
    steps,
    possible,
    prefix: () => {
      if (prefix === null) throw new Error('steps ran out of order')
      return prefix
    },
    refuse: (verb) => {
      throw fault('packages.missing', 'packages that the engine needs are not installed', {
        detail: `Missing: ${missing.join(' ')}. What needs no engine is built.`,
        hint: `Run as root: apt-get install ${missing.join(' ')}; then run "./floe ${verb}" again.`,
      })
    },
  }
}

/** Of a host that was made from packages: they are all that is needed. */
function inPackages(): Preparation {
  const prefix = packagedEngine()
  return {
    steps: [],
    possible: true,
    prefix: () => prefix,
    refuse: (verb) => {
      throw new Error(`"${verb}" needs nothing that could be missing`)
    },
  }
}
