import { resolve } from 'node:path'
import { fault } from '@floe/domain'
import type { Command } from 'commander'
import type { BenchAsked } from '../bench/product-benches'
import { table } from '../output'
import { progressOf } from './up'
import { wholeNumber } from './verb'

type Options = {
  short?: boolean
  json?: string
  rounds?: number
  seed?: number
  hosts?: number
  fault?: string[]
  minutes?: number
}

const SEED_MAX = 2 ** 32 - 1

export function addBench(program: Command): void {
  program
    .command('bench <name> [words...]')
    .summary('run a benchmark')
    .description(
      'Runs a benchmark and its baseline in the same run, on private ports and directories, and prints its figures. Arguments after "--" are passed to the benchmark. "./floe bench list" lists the benchmarks.',
    )
    .option('--short', 'fewer and shorter rounds')
    .option(
      '--json <file>',
      'also write {bench, host, figures: [{name, value, unit, goal, holds}]} to the file',
    )
    .option('--rounds <n>', 'rounds of faults (chaos, failover-automatic)', wholeNumber(1, 10_000))
    .option(
      '--seed <n>',
      'seed that decides which faults run in which configurations (chaos, failover-automatic)',
      wholeNumber(0, SEED_MAX),
    )
    .option('--hosts <n>', 'hosts besides the console (chaos, failover-automatic)', wholeNumber(3, 8))
    .option(
      '--fault <id>',
      'only rounds of this fault; may be given again (chaos, failover-automatic)',
      (id: string, before: string[] = []) => [...before, id],
    )
    .option('--minutes <n>', 'minutes of load, each of four times (neighbours)', wholeNumber(1, 120))
    .action(
      async (name: string, _words: string[], { short = false, json, fault: only, ...asked }: Options) => {
        const { runEngineBench, writeReport } = await import('../bench/bench')
        const { benchNames, productBenches, takes } = await import('../bench/product-benches')
        const names = benchNames()
        if (name === 'list') {
          process.stdout.write(`${names.join('\n')}\n`)
          return
        }
        if (!names.includes(name))
          throw fault('usage.bench', `there is no benchmark "${name}"`, {
            hint: `Benchmarks: ${names.join(', ')}.`,
          })
        const told: BenchAsked = { ...asked, ...(only && { faults: only }) }
        for (const option of Object.keys(told) as (keyof BenchAsked)[])
          if (!takes[name]?.includes(option))
            throw fault(
              'usage.bench_option',
              `benchmark "${name}" takes no --${option === 'faults' ? 'fault' : option}`,
              {
                hint: `It is for: ${Object.keys(takes)
                  .filter((other) => takes[other]?.includes(option))
                  .join(', ')}.`,
              },
            )
        const file = json === undefined ? undefined : resolve(json)
        const dashes = process.argv.indexOf('--')
        const load = productBenches[name]
        if (!load) {
          process.exitCode = runEngineBench(name, {
            short,
            json: file,
            more: dashes < 0 ? [] : process.argv.slice(dashes + 1),
          })
          return
        }
        const { progress } = progressOf('bench')
        const run = await load()
        const report = await run(
          short,
          (line) => progress.say(line),
          (line) => progress.log(line),
          told,
        )
        if (file !== undefined) writeReport(file, report)
        const rows = report.figures.map((f) => [
          f.name,
          String(f.value),
          f.unit,
          f.goal,
          f.holds ? 'holds' : 'does not hold',
        ])
        process.stdout.write(`${table(['figure', 'value', 'unit', 'goal', ''], rows)}\n`)
        if (report.table) process.stdout.write(`\n${table(report.table.headings, report.table.rows)}\n\n`)
        for (const [what, value] of Object.entries(report.detail ?? {}))
          process.stdout.write(
            `${what}: ${Array.isArray(value) ? value.map((v) => Number(v).toFixed(2)).join(' ') : typeof value === 'number' ? Math.round(value * 100) / 100 : String(value)}\n`,
          )
      },
    )
}
