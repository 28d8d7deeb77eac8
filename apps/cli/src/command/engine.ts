import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { type FaultError, fault } from '@floe/domain'
import type { Command } from 'commander'
import { checkoutDirectory } from '../installation/home'
import { parseCounts } from '../suite/suite'

/** The engine tool's own words after `floe: error:`, as a fault. */
function faultOfTool(stderr: string, verbName: string): FaultError {
  const part = (label: string) =>
    stderr
      .split('\n')
      .filter((line) => line.startsWith(label))
      .at(-1)
      ?.slice(label.length)
      .trim()
  return fault(`engine.${verbName}_failed`, part('floe: error:') ?? `engine ${verbName} failed`, {
    detail: part('DETAIL:'),
    hint: part('HINT:'),
  })
}

/** What the tool printed, as an object with one name for the one thing each verb answers. */
function resultOf(verbName: string, stdout: string): unknown {
  const lines = stdout.trim() === '' ? [] : stdout.trim().split('\n')
  const counts = parseCounts(stdout)
  if (verbName === 'build' || verbName === 'prefix') return { prefix: lines.at(-1) ?? null }
  if (verbName === 'packages') return { packages: lines }
  if (verbName === 'package') return { files: lines }
  return counts ?? { output: lines }
}

/**
 * `./floe engine …` is the engine's tool. The launcher calls it directly; only with --json does it come here, to have its
 * answer put into JSON.
 */
export function addEngine(program: Command): void {
  program
    .command('engine [verb] [words...]')
    .summary('build, test and patch the engine')
    .description(
      'The engine’s tool: build, prefix, test, patch, packages, … "./floe engine --help" explains them.',
    )
    .allowUnknownOption()
    .helpOption(false)
    .action(() => {
      const words = process.argv.slice(process.argv.indexOf('engine') + 1)
      const json = words.includes('--json')
      const tool = join(checkoutDirectory(), 'engine/tools/engine')
      const args = words.filter((word) => word !== '--json')
      const { status, stdout, stderr } = spawnSync(tool, args, {
        encoding: 'utf8',
        maxBuffer: 256 * 1024 * 1024,
        stdio: ['ignore', json ? 'pipe' : 'inherit', json ? 'pipe' : 'inherit'],
      })
      process.exitCode = status ?? 1
      if (!json) return
      const verbName = args.find((word) => !word.startsWith('-')) ?? 'engine'
      process.stderr.write(stderr)
      const counts = parseCounts(stdout)
      if (status === 0 || counts !== null)
        process.stdout.write(`${JSON.stringify(resultOf(verbName, stdout), null, 2)}\n`)
      else process.stdout.write(`${JSON.stringify({ fault: faultOfTool(stderr, verbName).fault })}\n`)
    })
}
