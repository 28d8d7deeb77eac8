import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fault, limitDriverTitles } from '@floe/domain'
import type { RouterOutputs } from '@floe/web/api'
import { requireInstallation } from '../installation/home'
import { runProgram } from '../run-program'
import { type BenchReport, describeHost, figure } from './bench'
import {
  Counted,
  type LimitProbe,
  limitError,
  limitProbes,
  makeProbeFiles,
  removeProbeFiles,
} from './limit-probes'
import {
  type LoopDevice,
  type LoopFileSystem,
  loopFileSystems,
  makeLoopDevice,
  requireLoopDevices,
} from './loop-device'
import { makePrivateInstallation, type PrivateInstallation } from './private-installation'
import { parseProgress } from './windows'

const IOPS = 800
const IO_LIMITS = ['--data-write-iops', String(IOPS), '--data-read-iops', String(IOPS)]
const CLIENTS = 4
/** An instance that commits nothing for this long under load, or completes no checkpoint after it, has locked itself up. */
const DEADLOCK_MS = 60_000
const CHECKPOINT_MS = 120_000
/** The first seconds fill caches. */
const SETTLE_MS = 3_000

type Limited = RouterOutputs['instance']['limits']
type Neighbour = { name: string; uri: string; password: string }
type Run = {
  fileSystem: LoopFileSystem
  limited: boolean
  /** By instance, each second. */
  tps: number[][]
  longestStallMs: number
  deadlocks: number
  /** Mean share of the limit of reads or of writes, whichever it used more of; limits that nobody reaches prove little. */
  used: number
}

/** Standard deviation as a share of the mean. */
export function coefficientOfVariation(values: readonly number[]): number {
  const mean = values.reduce((a, b) => a + b, 0) / values.length
  const variance = values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length
  return Math.sqrt(variance) / mean
}

/** Moments of commits in ms since the epoch, of a log of pgbench: `client n latency script seconds microseconds`. */
export const parseCommits = (log: string): number[] =>
  log.split('\n').flatMap((line) => {
    const [, , , , seconds, microseconds] = line.split(' ')
    return microseconds === undefined ? [] : Number(seconds) * 1_000 + Number(microseconds) / 1_000
  })

/** The longest time without a commit between `from` and `to`, before the first and after the last one, too. */
export function longestStall(commits: readonly number[], from: number, to: number): number {
  const inside = commits.filter((at) => at > from && at < to).sort((a, b) => a - b)
  let longest = 0
  let before = from
  for (const at of [...inside, to]) {
    longest = Math.max(longest, at - before)
    before = at
  }
  return longest
}

/** Ends the programs of a benchmark, which then removes what it made, when it is interrupted. */
async function interruptible<T>(body: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupted = new AbortController()
  const interrupt = () =>
    interrupted.abort(fault('bench.interrupted', 'the benchmark was interrupted; what it made is removed'))
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const name of signals) process.on(name, interrupt)
  try {
    return await body(interrupted.signal)
  } catch (error) {
    // what was ended fails in words of its own
    throw interrupted.signal.aborted ? interrupted.signal.reason : error
  } finally {
    for (const name of signals) process.off(name, interrupt)
  }
}

/**
 * Several instances on one device, each limited to 800 reads and 800 writes a second, under the same load at the same
 * time: how even is what each gets, on XFS and on ext4, without limits and with them; and how exactly each kind of limit
 * holds for one of them. The device is a file behind a loop device; the console's own database lies on it, too, without a
 * limit.
 */
export async function benchNeighbours(
  short: boolean,
  say: (line: string) => void,
  log: (line: string) => void,
  { minutes }: { minutes?: number } = {},
): Promise<BenchReport> {
  await requireLoopDevices()
  const host = describeHost()
  const size = short
    ? { instances: 2, seconds: 8, scale: 5, image: '8G' }
    : { instances: 4, seconds: 300, scale: 50, image: '40G' }
  if (minutes !== undefined) size.seconds = 60 * minutes
  const runs: Run[] = []
  const errors: Record<string, number> = {}
  let above = 0
  const rates: Record<string, number> = {}
  let notes: string[] = []
  let writeBack = 0
  await interruptible(async (signal) => {
    for (const fileSystem of loopFileSystems) {
      say(`making a device with ${fileSystem}`)
      const device = await makeLoopDevice(fileSystem, size.image)
      try {
        signal.throwIfAborted()
        say(`${fileSystem}: bringing up a private installation`)
        const installation = await makePrivateInstallation(log, { parent: device.directory })
        try {
          const bench = new Neighbours(installation, signal, say, log)
          await bench.create(size.instances, size.scale)
          // a limit holds alike on each file system
          const probed = !short || fileSystem === loopFileSystems[0]
          runs.push(await bench.load(device, fileSystem, false, size.seconds))
          const unlimited = probed ? await bench.probe(device, false) : {}
          notes = await bench.limit()
          runs.push(await bench.load(device, fileSystem, true, size.seconds))
          writeBack = Math.max(writeBack, bench.mostWriteBack)
          const limited = probed ? await bench.probe(device, true) : {}
          for (const [name, rate] of Object.entries(limited)) {
            const { limit } = limitProbes[name] as LimitProbe
            const most = unlimited[name] as number
            errors[`${fileSystem}: ${name}, % of the limit`] = limitError(rate, most, limit)
            above = Math.max(above, (rate / limit - 1) * 100)
            rates[`${fileSystem}: ${name} without a limit`] = most
            rates[`${fileSystem}: ${name} with a limit of ${limit}`] = rate
          }
        } finally {
          await installation.remove()
        }
      } finally {
        await device.remove()
      }
    }
  })
  const more = { ...size, 'written back past the limit at once, MB': Math.round(writeBack / 1024 ** 2) }
  return reportOf(host, runs, errors, { above, rates, size: more, notes })
}

const variation = (run: Run) => {
  const each = run.tps.map(coefficientOfVariation)
  return each.reduce((a, b) => a + b, 0) / each.length
}

function reportOf(
  host: BenchReport['host'],
  runs: readonly Run[],
  errors: Record<string, number>,
  {
    above,
    rates,
    size,
    notes,
  }: { above: number; rates: Record<string, number>; size: Record<string, unknown>; notes: string[] },
): BenchReport {
  const limited = (fileSystem: LoopFileSystem) =>
    runs.find((r) => r.fileSystem === fileSystem && r.limited) as Run
  const stall = (fileSystem: LoopFileSystem) => limited(fileSystem).longestStallMs / 1_000
  const deadlocks = runs.reduce((sum, r) => sum + r.deadlocks, 0)
  const title = (r: Run) => `${r.fileSystem}, limits ${r.limited ? 'on' : 'off'}`
  return {
    bench: 'neighbours',
    host,
    figures: [
      figure('cv_ext4', variation(limited('ext4')), 'of the mean, TPS per second', { most: 0.5 }),
      figure('cv_xfs', variation(limited('xfs')), 'of the mean, TPS per second', { most: 0.5 }),
      figure('longest_stall_s_ext4', stall('ext4'), 's without a commit, of any instance', { most: 5 }),
      figure('longest_stall_s_xfs', stall('xfs'), 's without a commit, of any instance', { most: 5 }),
      figure('deadlocks', deadlocks, 'instances', { most: 0 }),
      figure(
        'limit_error_percent',
        Math.max(...Object.values(errors)),
        '% of the limit, the worst of all kinds',
        {
          most: 5,
        },
      ),
      // what is below a limit may be the fault of a busy machine, what is above it never is
      figure('above_limit_percent', above, '% of the limit, the worst of all kinds', { most: 5 }),
    ],
    table: {
      headings: [
        'file system',
        'limits',
        'TPS of all',
        'variation',
        'longest stall (s)',
        `used of ${IOPS} a second`,
      ],
      rows: runs.map((r) => [
        r.fileSystem,
        r.limited ? 'on' : 'off',
        Math.round(r.tps.reduce((sum, t) => sum + t.reduce((a, b) => a + b, 0) / t.length, 0)),
        Number(variation(r).toFixed(3)),
        Number((r.longestStallMs / 1_000).toFixed(2)),
        Number(r.used.toFixed(2)),
      ]),
    },
    detail: {
      ...size,
      ...errors,
      ...rates,
      ...Object.fromEntries(
        runs.flatMap((r) => r.tps.map((t, i) => [`${title(r)}, TPS of instance ${i + 1} by second`, t])),
      ),
      notes: notes.join(' '),
    },
  }
}

class Neighbours {
  readonly neighbours: Neighbour[] = []
  /** The most bytes that were written and waited until the kernel sent them, where limits do not hold for that. */
  mostWriteBack = 0
  readonly #installation: PrivateInstallation
  readonly #signal: AbortSignal
  readonly #say: (line: string) => void
  readonly #log: (line: string) => void
  readonly #prefix: string

  constructor(
    installation: PrivateInstallation,
    signal: AbortSignal,
    say: (line: string) => void,
    log: (line: string) => void,
  ) {
    this.#installation = installation
    this.#signal = signal
    this.#say = say
    this.#log = log
    this.#prefix = requireInstallation(installation.home).enginePrefix
  }

  async create(count: number, scale: number): Promise<void> {
    for (let i = 1; i <= count; i++) {
      this.#signal.throwIfAborted()
      const name = `neighbour-${i}`
      this.#say(`creating ${name}`)
      const { password } = await this.#installation.floe<{ password: string }>(
        ...['instance', 'create', name, '--set', 'shared_buffers=64MB', '--set', 'max_wal_size=256MB'],
      )
      const { uri } = await this.#installation.floe<{ uri: string }>('cluster', 'connect', name)
      const neighbour = { name, uri, password }
      this.neighbours.push(neighbour)
      await this.#client(neighbour, 'pgbench', '-i', '-q', '-s', String(scale))
    }
  }

  /** Limits each; answers how, and what of it the agent says does not hold. */
  async limit(): Promise<string[]> {
    const notes = new Set<string>()
    for (const { name } of this.neighbours) {
      const { observed } = await this.#setLimits(name, IO_LIMITS)
      if (observed?.driver) notes.add(`Limited by ${limitDriverTitles[observed.driver]}.`)
      for (const { why } of observed?.gaps ?? []) notes.add(why)
    }
    return [...notes]
  }

  #setLimits(name: string, limits: readonly string[]): Promise<Pick<Limited, 'observed'>> {
    return this.#installation.floe<Pick<Limited, 'observed'>>('instance', 'limit', name, ...limits)
  }

  /** How much of each thing the first one gets, with all limits at once, none of which is in another's way, or without. */
  async probe(device: LoopDevice, limited: boolean): Promise<Record<string, number>> {
    const [first] = this.neighbours as [Neighbour]
    const run = (shell: string) => this.#programOutput(first, shell)
    const facts = {
      counted: await this.#counted(first),
      requestsOfFsyncedWrite: device.requestsOfFsyncedWrite,
    }
    const rates: Record<string, number> = {}
    if (limited)
      await this.#setLimits(
        first.name,
        Object.values(limitProbes).flatMap(({ option, value }) => [option, value]),
      )
    else await run(makeProbeFiles)
    for (const [name, { measure }] of Object.entries(limitProbes)) {
      this.#say(`measuring ${name} ${limited ? 'with' : 'without'} a limit`)
      rates[name] = await measure(run, facts)
    }
    if (limited) await run(removeProbeFiles)
    return rates
  }

  /** What a program prints that the server of an instance starts, and so has the limits of its sessions. */
  async #programOutput(neighbour: Neighbour, shell: string): Promise<string> {
    const quoted = `'${shell.replaceAll("'", "''")}'`
    return await this.#client(
      neighbour,
      'psql',
      ...['-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', 'create temporary table said (line text)'],
      ...['-c', `copy said from program ${quoted}`, '-c', 'select line from said'],
    )
  }

  /** The same load on all at once. */
  async load(
    device: LoopDevice,
    fileSystem: LoopFileSystem,
    limited: boolean,
    seconds: number,
  ): Promise<Run> {
    this.#say(`${fileSystem}, limits ${limited ? 'on' : 'off'}: ${seconds} s of load`)
    const over = new AbortController()
    const watching = limited ? this.#watchWriteBack(over.signal) : null
    const counted = await Promise.all(this.neighbours.map((n) => this.#counted(n)))
    const before = counted.map((c) => c.requests(device.number))
    const began = performance.now()
    const each = await Promise.all(this.neighbours.map((n) => this.#loadOne(n, seconds))).finally(() =>
      over.abort(),
    )
    const used = counted.map((c, i) => {
      const { reads, writes } = c.requests(device.number)
      const most = Math.max(reads - (before[i]?.reads ?? 0), writes - (before[i]?.writes ?? 0))
      return (most * 1_000) / (performance.now() - began) / IOPS
    })
    await watching
    const checkpoints = await Promise.all(this.neighbours.map((n) => this.#completesCheckpoint(n)))
    return {
      fileSystem,
      limited,
      tps: each.map((e) => e.tps),
      longestStallMs: Math.max(...each.map((e) => e.longestStallMs)),
      deadlocks: each.filter((e, i) => e.longestStallMs >= DEADLOCK_MS || !checkpoints[i]).length,
      used: used.reduce((a, b) => a + b, 0) / used.length,
    }
  }

  async #counted({ name }: Neighbour): Promise<Counted> {
    const { postmasterPid } = await this.#installation.floe<{ postmasterPid: number }>(
      'instance',
      'show',
      name,
    )
    return new Counted(postmasterPid)
  }

  /** Looks once a second at what the first one has written that no limit holds for. */
  async #watchWriteBack(over: AbortSignal): Promise<void> {
    const counted = await this.#counted(this.neighbours[0] as Neighbour)
    while (!over.aborted) {
      this.mostWriteBack = Math.max(this.mostWriteBack, counted.unlimitedWriteBack())
      await setTimeout(1_000, null, { signal: over }).catch(() => {})
    }
  }

  async #loadOne(neighbour: Neighbour, seconds: number) {
    const directory = mkdtempSync(join(tmpdir(), 'floe-pgbench-'))
    try {
      const began = Date.now()
      const output = await this.#client(
        neighbour,
        'pgbench',
        ...['-n', '-c', String(CLIENTS), '-j', '1', '-T', String(seconds), '-P', '1', '--progress-timestamp'],
        ...['--log', `--log-prefix=${join(directory, 'log')}`],
      )
      const [from, to] = [began + SETTLE_MS, began + seconds * 1_000]
      const commits = readdirSync(directory).flatMap((name) =>
        parseCommits(readFileSync(join(directory, name), 'utf8')),
      )
      const tps = parseProgress(output).filter((p) => p.at - 1_000 >= from && p.at <= to)
      if (tps.length === 0) throw fault('bench.no_load', `pgbench reported nothing about "${neighbour.name}"`)
      return { tps: tps.map((p) => p.tps), longestStallMs: longestStall(commits, from, to) }
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }

  async #completesCheckpoint(neighbour: Neighbour): Promise<boolean> {
    const late = AbortSignal.any([this.#signal, AbortSignal.timeout(CHECKPOINT_MS)])
    const done = await this.#client(neighbour, 'psql', '-Xqc', 'checkpoint', late).then(
      () => true,
      (error: unknown) => {
        this.#log(`${neighbour.name}: ${String(error)}`)
        return false
      },
    )
    this.#signal.throwIfAborted()
    return done
  }

  /** Runs a client of the engine to its end; answers all that it said. */
  async #client(
    { uri, password, name }: Neighbour,
    program: 'pgbench' | 'psql',
    ...words: (string | AbortSignal)[]
  ): Promise<string> {
    const args = words.filter((w) => typeof w === 'string')
    const signal = words.find((w) => typeof w !== 'string') ?? this.#signal
    const said: string[] = []
    const { status } = await runProgram(join(this.#prefix, 'bin', program), [...args, uri], {
      env: { PATH: process.env.PATH ?? '', PGPASSWORD: password },
      signal,
      onLine: (line) => {
        said.push(line)
        this.#log(`${name}: ${line}`)
      },
    })
    signal.throwIfAborted()
    if (status !== 0)
      throw fault('bench.client_failed', `${program} ${args.join(' ')} failed on "${name}"`, {
        detail: said.slice(-10).join('\n'),
      })
    return said.join('\n')
  }
}
