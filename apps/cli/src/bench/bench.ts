import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, hostname, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { checkoutDirectory } from '../installation/home'

/** One measured number. `goal` is in words, e.g. `<= 1`; `holds` says whether the value reaches it. */
export type Figure = { name: string; value: number; unit: string; goal: string; holds: boolean }
export type BenchReport = {
  bench: string
  host: Record<string, unknown>
  figures: Figure[]
  /** What the figures come to, where they are read side by side. */
  table?: { headings: string[]; rows: (string | number | null)[][] }
  detail?: Record<string, unknown>
}

/** The host a figure was measured on; without it the figure means nothing. */
export function describeHost(): Record<string, unknown> {
  const pretty = readFileSync('/etc/os-release', 'utf8').match(/^PRETTY_NAME="?([^"\n]*)/m)?.[1] ?? null
  return {
    name: hostname(),
    system: pretty,
    kernel: release(),
    cpus: cpus().length,
    cpu: cpus()[0]?.model ?? null,
    memoryBytes: totalmem(),
    loadBefore: Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0]),
  }
}

/** `at most 1` or `at least 2`, judged. */
export function figure(
  name: string,
  value: number,
  unit: string,
  goal: { most: number } | { least: number },
): Figure {
  const rounded = Math.round(value * 1000) / 1000
  return 'most' in goal
    ? { name, value: rounded, unit, goal: `<= ${goal.most}`, holds: value <= goal.most }
    : { name, value: rounded, unit, goal: `>= ${goal.least}`, holds: value >= goal.least }
}

const engineBench = () => join(checkoutDirectory(), 'engine/bench')

/** Names of the engine's own benchmarks, which are folders. */
export function engineBenchNames(): string[] {
  return readdirSync(engineBench(), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
}

/** Runs a benchmark of the engine, which writes its report itself. Answers its exit status. */
export function runEngineBench(
  name: string,
  options: { short: boolean; json?: string; more: string[] },
): number {
  const args = [
    name,
    ...(options.short ? ['--short'] : []),
    ...(options.json ? ['--json', options.json] : []),
    ...options.more,
  ]
  const { status, error } = spawnSync(join(engineBench(), 'run'), args, { stdio: 'inherit' })
  if (error)
    throw fault('bench.not_started', `could not start benchmark "${name}"`, { detail: error.message })
  return status ?? 1
}

export function writeReport(file: string, report: BenchReport): void {
  try {
    writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`)
  } catch (cause) {
    throw fault('bench.no_report', `could not write "${file}"`, {
      detail: cause instanceof Error ? cause.message : String(cause),
      cause,
    })
  }
}
