import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { controlDatabaseUrl, fault, type Installation, type InstanceId } from '@floe/domain'
import { type ConsoleClient, createConsoleClient } from '../console/client'
import { controlPostmaster } from '../control-database/control'
import { SUPERUSER } from '../control-database/initialise'
import { checkoutDirectory, requireInstallation } from '../installation/home'
import { liveRecord } from '../process/records'
import { runProgram } from '../run-program'
import { type BenchReport, describeHost, figure } from './bench'
import { makePrivateInstallation } from './private-installation'
import { familySeconds, processorSeconds, residentMegabytes } from './processor-time'

const HOSTS = 20
/** Operations that are submitted at once. */
const SUBMITTED = 40
/** Between the last instance seen running and the measurement: roll-ups of ten seconds and a minute have run by then. */
const SETTLE_MS = 75_000
const SETTLE_SHORT_MS = 20_000
/** The list's own interval in the browser. */
const LOOK_MS = 1_000
/** As many instances as the list's page follows live. */
const FOLLOWED = 100

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** The value below which `share` of the values lie; the greatest of them for few values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}

/** Runs the simulated hosts in one process beside us, each enrolled by a token of its own. */
async function startSimulatedHosts(
  client: ConsoleClient,
  installation: Installation,
  directory: string,
  log: (line: string) => void,
): Promise<{ process: ChildProcessWithoutNullStreams; hostIds: string[] }> {
  const added = await Promise.all(
    Array.from({ length: HOSTS }, (_, i) =>
      client.trpc.host.add.mutate({ name: `simulated-${String(i + 1).padStart(2, '0')}` }),
    ),
  )
  const child = spawn(process.execPath, ['--import', 'tsx', 'apps/agent/tools/simulated-hosts.ts'], {
    cwd: checkoutDirectory(),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const ready = new Promise<void>((resolve, reject) => {
    let said = ''
    child.stdout.on('data', (text: Buffer) => {
      said += text
      if (said.includes('ready\n')) resolve()
    })
    child.stderr.on('data', (text: Buffer) => log(String(text)))
    child.once('close', () => reject(fault('bench.simulation_ended', 'the simulated hosts ended')))
  })
  child.stdin.write(
    `${JSON.stringify({
      directory,
      console: `http://127.0.0.1:${installation.webPort}`,
      authority: added[0]?.authority,
      hosts: added.map(({ name, token }) => ({ name, token })),
    })}\n`,
  )
  await ready
  return { process: child, hostIds: added.map(({ hostId }) => hostId) }
}

/** Creates the instances by operations, as a person would, and waits until all are seen running. */
async function createInstances(
  client: ConsoleClient,
  hostIds: readonly string[],
  count: number,
  say: (line: string) => void,
): Promise<number> {
  const began = performance.now()
  let next = 0
  await Promise.all(
    Array.from({ length: SUBMITTED }, async () => {
      for (let i = next++; i < count; i = next++) {
        await client.trpc.instance.create.mutate({
          name: `fleet-${String(i + 1).padStart(4, '0')}`,
          hostId: hostIds[i % hostIds.length] as never,
        })
        if ((i + 1) % 200 === 0) say(`${i + 1} of ${count} instances ordered`)
      }
    }),
  )
  const end = performance.now() + 600_000
  for (;;) {
    const { instances } = await client.trpc.instance.list.query({})
    const done = instances.filter((i) => i.state === 'running' && i.openOperation === null).length
    if (done === count) break
    if (performance.now() > end)
      throw fault('bench.not_created', `only ${done} of ${count} instances run after 10 minutes`)
    await pause(2_000)
  }
  return performance.now() - began
}

/** Asks the control database, as the launcher does. */
class ControlDatabase {
  readonly #psql: string
  readonly #uri: string

  constructor(installation: Installation) {
    this.#psql = join(installation.enginePrefix, 'bin/psql')
    this.#uri = controlDatabaseUrl(installation, SUPERUSER)
  }

  async number(statement: string): Promise<number> {
    const { status, stdout, tail } = await runProgram(this.#psql, ['-XAtqc', statement, this.#uri], {
      env: { PATH: process.env.PATH ?? '' },
    })
    if (status !== 0)
      throw fault('bench.statement_failed', `"${statement}" failed`, { detail: tail.join('\n') })
    return Number(stdout.trim())
  }

  size = () => this.number('SELECT pg_database_size(current_database())')
  samples = (from: number, to: number) =>
    this.number(
      `SELECT count(*) FROM telemetry.sample WHERE at >= to_timestamp(${from / 1000}) AND at < to_timestamp(${to / 1000})`,
    )
  /** Seconds that the newest sample of the instance that is furthest behind is old. */
  lag = () =>
    this.number(`SELECT extract(epoch FROM clock_timestamp() - min(newest_at)) FROM telemetry.sample_cursor`)
}

/** One open page: the list every second, and live figures of as many instances as the page follows. */
async function readAsPage(
  client: ConsoleClient,
  seconds: number,
): Promise<{ ms: number[]; oldestMs: number }> {
  const first = (await client.trpc.instance.list.query({})).instances
  const live = client.trpc.telemetry.stream.subscribe(
    {
      instances: first
        .slice(0, FOLLOWED)
        .map(({ instanceId }) => ({ instanceId: instanceId as InstanceId, afterSeq: null })),
      metrics: ['tps'],
      changes: true,
    },
    {},
  )
  const ms: number[] = []
  let oldestMs = 0
  try {
    const end = performance.now() + seconds * 1_000
    while (performance.now() < end) {
      const began = performance.now()
      const { instances } = await client.trpc.instance.list.query({})
      const took = performance.now() - began
      ms.push(took)
      oldestMs = Math.max(oldestMs, ...instances.map((i) => i.ageMs ?? Number.POSITIVE_INFINITY))
      await pause(Math.max(0, LOOK_MS - took))
    }
  } finally {
    live.unsubscribe()
  }
  return { ms, oldestMs }
}

/**
 * What a large fleet costs its console: 20 hosts with 50 instances each. Controller, web and control database are the real
 * ones, hosts and instances were enrolled and created through them; the agents are simulated, in one process, and tell new
 * figures of every instance each second by the real contract. Measured is what one open list of all instances waits for,
 * and what the processes use, while every sample is stored. `controller_cores` is processor time by time.
 */
export async function benchFleet(
  short: boolean,
  say: (line: string) => void,
  log: (line: string) => void,
): Promise<BenchReport> {
  const host = describeHost()
  const [count, seconds, settleMs] = short ? [200, 20, SETTLE_SHORT_MS] : [1_000, 60, SETTLE_MS]
  say('bringing up a private installation')
  const own = await makePrivateInstallation(log)
  const directory = mkdtempSync(join(tmpdir(), 'floe-fleet-'))
  let simulation: ChildProcessWithoutNullStreams | undefined
  try {
    const installation = requireInstallation(own.home)
    const client = createConsoleClient(own.home, installation)
    say(`enrolling ${HOSTS} simulated hosts`)
    const simulated = await startSimulatedHosts(client, installation, directory, log)
    simulation = simulated.process
    say(`creating ${count} instances`)
    const createMs = await createInstances(client, simulated.hostIds, count, say)
    say(`all run after ${Math.round(createMs / 1000)} s; settling`)
    await pause(settleMs)

    const pidOf = (name: string) => {
      const record = liveRecord(own.home, name)
      if (!record) throw fault('bench.process_gone', `process "${name}" does not run`)
      return record.pid
    }
    const controller = pidOf('controller')
    const web = pidOf('web')
    const postmaster = controlPostmaster(installation)?.pid ?? pidOf('control-database')
    const simulator = simulation.pid as number
    const database = new ControlDatabase(installation)
    const used = () => ({
      at: performance.now(),
      controller: processorSeconds(controller),
      web: processorSeconds(web),
      database: familySeconds(postmaster),
      simulator: processorSeconds(simulator),
    })

    say(`measuring for ${seconds} s`)
    const memory = { controller: 0, web: 0, simulator: 0 }
    const look = () => {
      memory.controller = Math.max(memory.controller, residentMegabytes(controller))
      memory.web = Math.max(memory.web, residentMegabytes(web))
      memory.simulator = Math.max(memory.simulator, residentMegabytes(simulator))
    }
    const sizeBefore = await database.size()
    const from = Date.now()
    const before = used()
    const looking = setInterval(look, 2_000)
    const page = await readAsPage(client, seconds).finally(() => clearInterval(looking))
    look()
    const after = used()
    const to = Date.now()
    const lag = await database.lag()
    const sizeAfter = await database.size()
    // what was on its way at the end is stored within the time that it lagged
    await pause(5_000)
    const stored = await database.samples(from, to)
    const elapsed = (after.at - before.at) / 1_000
    const cores = (name: 'controller' | 'web' | 'database' | 'simulator') =>
      (after[name] - before[name]) / elapsed

    return {
      bench: 'fleet',
      host,
      figures: [
        figure('instances', count, 'instances', { least: short ? 200 : 1_000 }),
        figure('list_ms_p95', percentile(page.ms, 0.95), 'ms', { most: 1_000 }),
        figure('controller_cores', cores('controller'), 'cores', { most: 1 }),
        figure('controller_rss_mb', memory.controller, 'MB', { most: 1_024 }),
        figure('web_rss_mb', memory.web, 'MB', { most: 1_024 }),
        figure(
          'samples_stored_percent',
          (stored / (count * ((to - from) / 1_000))) * 100,
          '% of those taken',
          { least: 99 },
        ),
        figure('sample_lag_s', lag, 's, the instance furthest behind', { most: 5 }),
        figure('observation_age_ms_worst', page.oldestMs, 'ms, of any instance in any answer', {
          most: 5_000,
        }),
      ],
      detail: {
        hosts: HOSTS,
        seconds: elapsed,
        listCalls: page.ms.length,
        listMsMedian: percentile(page.ms, 0.5),
        listMsWorst: Math.max(...page.ms),
        webCores: cores('web'),
        controlDatabaseCores: cores('database'),
        simulatorCores: cores('simulator'),
        simulatorRssMb: memory.simulator,
        controlDatabaseMb: sizeAfter / 2 ** 20,
        controlDatabaseMbPerHour: ((sizeAfter - sizeBefore) / 2 ** 20 / elapsed) * 3_600,
        createdInSeconds: createMs / 1_000,
      },
    }
  } finally {
    await own.remove()
    if (simulation) {
      const ended = new Promise((resolve) => simulation?.once('close', resolve))
      simulation.stdin.end()
      if (simulation.exitCode === null) await ended
    }
    rmSync(directory, { recursive: true, force: true })
  }
}
