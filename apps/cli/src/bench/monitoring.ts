import { spawn } from 'node:child_process'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { endProcess, type ProcessIdentity } from '@floe/host/process'
import { requireInstallation } from '../installation/home'
import { liveRecord } from '../process/records'
import { runProgram } from '../run-program'
import { type BenchReport, describeHost, figure } from './bench'
import { makePrivateInstallation, type PrivateInstallation } from './private-installation'
import { processorSeconds, residentMegabytes } from './processor-time'
import { pairedCost, parseProgress, schedule, type Window, windowMeans } from './windows'

const INSTANCES = 20
/** After a switch the agent first catches up; that is not what sampling costs. */
const SETTLE_MS = 3_000
const WARM_UP_MS = 10_000

type Created = { instanceId: string; name: string; connectionString: string }

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function createInstances(
  installation: PrivateInstallation,
  say: (line: string) => void,
): Promise<Created> {
  let loaded: Created | undefined
  for (let i = 1; i <= INSTANCES; i++) {
    // one takes the load; no checkpoint in the middle of a window
    const settings =
      i === 1
        ? ['shared_buffers=512MB', 'max_wal_size=16GB', 'checkpoint_timeout=1h']
        : ['shared_buffers=32MB']
    const created = await installation.floe<Created>(
      'instance',
      'create',
      `bench-${i}`,
      ...settings.flatMap((s) => ['--set', s]),
    )
    if (i === 1) loaded = created
    if (i % 5 === 0) say(`${i} of ${INSTANCES} instances run`)
  }
  return loaded as Created
}

/** Ends everything that is neither engine nor agent, so that only these are measured. */
async function endOthers(installation: PrivateInstallation): Promise<void> {
  for (const name of ['supervisor', 'web', 'controller']) {
    const other = liveRecord(installation.home, name)
    if (other !== null) await endProcess(other, 10_000)
  }
}

/** Switches the agent off and on by stopping its process for a while: it takes no sample then, and loses nothing else. */
function setSampling(agent: ProcessIdentity, on: boolean): void {
  process.kill(agent.pid, on ? 'SIGCONT' : 'SIGSTOP')
}

type Measured = {
  cost: ReturnType<typeof pairedCost>
  tpsWith: number
  tpsWithout: number
  /** Of the agent, in its "on" windows. */
  residentMegabytesMax: number
  processorPercent: number
  /** Agent and the loaded instance's backends that answer it, in percent of all processors of the machine. */
  machinePercent: number
}

/** The backends of an instance that answer the agent's sampler. */
async function samplingBackends(psql: string, connectionString: string): Promise<number[]> {
  const asked = await runProgram(psql, [
    '-XAtq',
    '-c',
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'floe agent'",
    connectionString,
  ])
  const pids = asked.stdout.trim().split('\n').filter(Boolean).map(Number)
  if (asked.status !== 0 || pids.length === 0)
    throw fault('bench.not_sampled', 'the agent is not connected to the instance that it should sample', {
      detail: asked.tail.join('\n'),
    })
  return pids
}

/** One pgbench run during which the agent is switched off and on, window by window. */
async function measure(options: {
  agent: ProcessIdentity
  pgbench: string
  psql: string
  connectionString: string
  pairs: number
  windowMs: number
  log: (line: string) => void
}): Promise<Measured> {
  const { agent, pgbench, psql, connectionString, pairs, windowMs, log } = options
  const plan = schedule(pairs)
  const seconds = Math.ceil((WARM_UP_MS + plan.length * windowMs) / 1000) + 5
  const load = spawn(
    pgbench,
    [
      '-c',
      '4',
      '-j',
      '2',
      '-M',
      'prepared',
      '-T',
      String(seconds),
      '-P',
      '1',
      '--progress-timestamp',
      connectionString,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [load.stdout, load.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  const ended = new Promise((resolve) => load.once('close', resolve))
  const windows: Window[] = []
  const memory: number[] = []
  let busySeconds = 0
  let backendSeconds = 0
  let measuredSeconds = 0
  try {
    await pause(WARM_UP_MS)
    for (const on of plan) {
      setSampling(agent, on)
      const from = Date.now()
      await pause(SETTLE_MS)
      const backends = on ? await samplingBackends(psql, connectionString) : []
      const ofBackends = () => backends.reduce((sum, pid) => sum + processorSeconds(pid), 0)
      const [before, backendsBefore] = [processorSeconds(agent.pid), ofBackends()]
      const began = performance.now()
      await pause(windowMs - SETTLE_MS)
      if (on) {
        busySeconds += processorSeconds(agent.pid) - before
        backendSeconds += ofBackends() - backendsBefore
        measuredSeconds += (performance.now() - began) / 1000
        memory.push(residentMegabytes(agent.pid))
      }
      windows.push({ on, from, to: Date.now() })
    }
  } finally {
    setSampling(agent, true)
    load.kill('SIGINT')
    await ended
  }
  log(output)
  const means = windowMeans(parseProgress(output), windows, SETTLE_MS)
  const mean = (on: boolean) => {
    const of = means.filter((_, i) => windows[i]?.on === on)
    return of.reduce((sum, v) => sum + v, 0) / of.length
  }
  return {
    cost: pairedCost(windows, means),
    tpsWith: mean(true),
    tpsWithout: mean(false),
    residentMegabytesMax: Math.max(...memory),
    processorPercent: (busySeconds / measuredSeconds) * 100,
    machinePercent: ((busySeconds + backendSeconds) / measuredSeconds / cpus().length) * 100,
  }
}

/**
 * What it costs to watch. First one instance runs, under pgbench's TPC-B load, and the agent that samples it once a second
 * is switched off and on in neighbouring pairs of windows under that one load: `tps_cost_percent`, and what agent and its
 * backend use of the machine's processors, which bounds the cost where TPS are too noisy to show it: `sampling_machine_percent`. Then 20 instances run
 * and are sampled, one of them under the same load: the agent's memory and processor time, and beside the figures the cost
 * of sampling all 20. Controller and web do not run meanwhile, so that only the agent and its queries are measured.
 */
export async function benchMonitoring(
  short: boolean,
  say: (line: string) => void,
  log: (line: string) => void,
): Promise<BenchReport> {
  const host = describeHost()
  const [pairs, windowMs] = short ? [6, 9_000] : [20, 15_000]
  say('bringing up a private installation')
  const installation = await makePrivateInstallation(log)
  let agent: ProcessIdentity | null = null
  try {
    const { enginePrefix } = requireInstallation(installation.home)
    const program = (name: string) => join(enginePrefix, 'bin', name)
    const { connectionString } = await createInstances(installation, say)
    const idle = Array.from({ length: INSTANCES - 1 }, (_, i) => `bench-${i + 2}`)
    const filled = await runProgram(
      program('pgbench'),
      ['-i', '-q', '-s', short ? '10' : '50', connectionString],
      { onLine: log },
    )
    if (filled.status !== 0)
      throw fault('bench.not_filled', 'pgbench could not fill its tables', { detail: filled.tail.join('\n') })

    for (const name of idle) await installation.floe('instance', 'stop', name)
    await endOthers(installation)
    agent = liveRecord(installation.home, 'agent')
    if (agent === null) throw fault('bench.no_agent', 'the agent does not run')
    const run = { pgbench: program('pgbench'), psql: program('psql'), connectionString, windowMs, log }
    say(
      `one instance: ${pairs} pairs of ${windowMs / 1000} s with and without sampling, under one pgbench run`,
    )
    const one = await measure({ ...run, agent, pairs })

    await installation.floe('up')
    agent = liveRecord(installation.home, 'agent')
    if (agent === null) throw fault('bench.no_agent', 'the agent does not run')
    for (const name of idle) await installation.floe('instance', 'start', name)
    await endOthers(installation)
    say(`${INSTANCES} instances: ${Math.ceil(pairs / 2)} pairs`)
    const all = await measure({ ...run, agent, pairs: Math.ceil(pairs / 2) })

    const { percent, low, high } = one.cost
    return {
      bench: 'monitoring',
      host,
      figures: [
        figure('tps_cost_percent', percent, '% of TPS, one instance sampled', { most: 1 }),
        figure('sampling_machine_percent', one.machinePercent, '% of all processors, one instance sampled', {
          most: 1,
        }),
        figure('agent_rss_mb', all.residentMegabytesMax, 'MB', { most: 120 }),
        figure('agent_cpu_percent', all.processorPercent, '% of a core', { most: 10 }),
        figure('instances', INSTANCES, 'instances sampled for memory and processor', { least: 20 }),
      ],
      detail: {
        load: 'pgbench TPC-B, 4 clients, prepared, on one instance',
        pairs,
        windowSeconds: windowMs / 1000,
        tpsCostLow95: low,
        tpsCostHigh95: high,
        pairCosts: one.cost.pairs,
        tpsWith: one.tpsWith,
        tpsWithout: one.tpsWithout,
        tpsCostOf20: all.cost.percent,
        tpsCostOf20Low95: all.cost.low,
        tpsCostOf20High95: all.cost.high,
      },
    }
  } finally {
    // a stopped agent could not end
    if (agent !== null && liveRecord(installation.home, 'agent') !== null) setSampling(agent, true)
    await installation.remove()
  }
}
