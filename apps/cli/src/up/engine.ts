import { join } from 'node:path'
import { fault } from '@floe/domain'
import { checkoutDirectory } from '../installation/home'
import type { StepReport } from '../progress/progress'
import { runProgram } from '../run-program'

export type EngineVariant = 'release' | 'assert' | 'stock'

const tool = () => join(checkoutDirectory(), 'engine/tools/engine')

/** The prefix of an engine that is built already, else null. */
export async function enginePrefix(variant: EngineVariant = 'release'): Promise<string | null> {
  const { status, stdout } = await runProgram(tool(), ['prefix', '--variant', variant])
  return status === 0 ? (stdout.trim().split('\n').at(-1) ?? null) : null
}

/** Builds an engine, or finds it in the cache, and answers its prefix. */
export async function buildEngine(variant: EngineVariant, report: StepReport): Promise<string> {
  const { status, stdout, tail } = await runProgram(tool(), ['build', '--variant', variant], {
    onLine: (line) => {
      const step = line.match(/^floe: step (.*?)(?: \(\d+ s\))?$/)?.[1]
      if (step) report.now(step)
      else report.log(line)
    },
  })
  const prefix = stdout.trim().split('\n').at(-1)
  if (status === 0 && prefix) return prefix
  const message = tail.find((line) => line.startsWith('floe: error: '))?.slice('floe: error: '.length)
  throw fault('engine.not_built', message ?? 'could not build the engine', {
    detail:
      tail
        .filter((line) => line.startsWith('DETAIL:'))
        .map((line) => line.slice(9).trim())
        .join(' ') || tail.slice(-5).join('\n'),
    hint:
      tail
        .filter((line) => line.startsWith('HINT:'))
        .map((line) => line.slice(7).trim())
        .join(' ') || undefined,
  })
}
