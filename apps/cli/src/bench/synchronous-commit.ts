import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CommitMode, commitModes, fault } from '@floe/domain'
import { requireInstallation } from '../installation/home'
import { type BenchReport, describeHost, type Figure, figure } from './bench'
import { makePrivateInstallation } from './private-installation'
import { median } from './windows'

const CLIENTS = 16

/** Latencies in ms of every transaction that pgbench logged in a directory. */
export function readLatencies(directory: string): number[] {
  return readdirSync(directory)
    .filter((name) => name.startsWith('pgbench_log'))
    .flatMap((name) => readFileSync(join(directory, name), 'utf8').split('\n'))
    .filter((line) => line !== '')
    .map((line) => Number(line.split(' ')[2]) / 1_000)
}

/** The value below which a share of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}

/** TPS that were published for these levels, with 16 clients on 4 cores; remote_apply was not. */
const PUBLISHED: Partial<Record<CommitMode, number>> = {
  on: 1_052,
  remote_write: 1_711,
  local: 2_447,
  off: 3_774,
}

/** The levels side by side, as the published ones are: each with its share of the fastest and of the default. */
export function compareModes(
  tps: (mode: CommitMode) => number,
  p99Ms: (mode: CommitMode) => number,
): NonNullable<BenchReport['table']> {
  const ratio = (value: number, to: number) => Number((value / to).toFixed(2))
  return {
    headings: ['mode', 'TPS', 'p99 (ms)', 'ratio to off', 'ratio to on', 'published TPS', 'its ratio to off'],
    rows: commitModes.map((mode) => {
      const published = PUBLISHED[mode] ?? null
      return [
        mode,
        Math.round(tps(mode)),
        Number(p99Ms(mode).toFixed(1)),
        ratio(tps(mode), tps('off')),
        ratio(tps(mode), tps('on')),
        published,
        published && ratio(published, PUBLISHED.off as number),
      ]
    }),
  }
}

/**
 * What each level of synchronous_commit costs: one primary, two standbys of which a commit waits for any one, 16 clients,
 * pgbench's TPC-B. The levels run one after the other in every round, so that a drift weighs on all alike; the figure of a
 * level is the median over the rounds.
 */
export async function benchSynchronousCommit(
  short: boolean,
  say: (line: string) => void,
  log: (line: string) => void,
): Promise<BenchReport> {
  const host = describeHost()
  const [rounds, seconds, scale] = short ? [1, 5, 10] : [5, 30, 50]
  say('bringing up a private installation')
  const installation = await makePrivateInstallation(log)
  try {
    const { password } = await installation.floe<{ password: string }>(
      'instance',
      'create',
      'bench',
      '--set',
      'shared_buffers=512MB',
      '--set',
      'max_wal_size=4GB',
    )
    for (const name of ['bench-2', 'bench-3']) {
      say(`creating standby ${name}`)
      await installation.floe('standby', 'create', 'bench', name)
    }
    await installation.floe('cluster', 'synchronous', 'bench', 'bench-2', 'bench-3', '--any', '1')
    const forms = await installation.floe<{ uri: string }>('cluster', 'connect', 'bench')
    const { enginePrefix } = requireInstallation(installation.home)
    const pgbench = (directory: string, ...args: string[]) => {
      const r = spawnSync(join(enginePrefix, 'bin', 'pgbench'), [...args, forms.uri], {
        cwd: directory,
        encoding: 'utf8',
        maxBuffer: 1 << 26,
        env: { PATH: process.env.PATH ?? '', PGPASSWORD: password },
      })
      log(`${r.stdout}${r.stderr}`)
      if (r.status !== 0)
        throw fault('bench.pgbench_failed', `pgbench ${args.join(' ')} failed`, {
          detail: r.stderr.slice(-500),
        })
      return r.stdout
    }
    say('filling the tables')
    pgbench('/', '-i', '-q', '-s', String(scale))
    const tps = new Map<string, number[]>(commitModes.map((m) => [m, []]))
    const latencies = new Map<string, number[]>(commitModes.map((m) => [m, []]))
    for (let round = 1; round <= rounds; round++)
      for (const mode of round % 2 === 1 ? commitModes : [...commitModes].reverse()) {
        await installation.floe('cluster', 'synchronous', 'bench', '--mode', mode)
        const directory = mkdtempSync(join(tmpdir(), 'floe-pgbench-'))
        try {
          const output = pgbench(
            directory,
            ...['-c', String(CLIENTS), '-j', '2', '-M', 'prepared', '-T', String(seconds), '--log'],
          )
          const measured = Number(/^tps = ([\d.]+)/m.exec(output)?.[1])
          tps.get(mode)?.push(measured)
          latencies.get(mode)?.push(percentile(readLatencies(directory), 0.99))
          say(`round ${round} of ${rounds}: ${mode} ${Math.round(measured)} TPS`)
        } finally {
          rmSync(directory, { recursive: true, force: true })
        }
      }
    const of = (mode: CommitMode) => median(tps.get(mode) ?? [])
    // no goal of its own: the table is the answer; a level that waits for less may not be slower than one that waits for more
    const order = [...commitModes].map(of)
    const figures: Figure[] = commitModes.map((mode) => figure(`tps_${mode}`, of(mode), 'TPS', { least: 1 }))
    return {
      bench: 'synchronous-commit',
      host,
      figures,
      table: compareModes(of, (mode) => median(latencies.get(mode) ?? [])),
      detail: {
        ...Object.fromEntries(commitModes.map((mode) => [`${mode} by round (TPS)`, tps.get(mode)])),
        'each level at least as fast as the safer one': order.every(
          (v, i) => i === 0 || v >= (order[i - 1] as number),
        ),
        published: '4 cores, 16 clients',
      },
    }
  } finally {
    await installation.remove()
  }
}
