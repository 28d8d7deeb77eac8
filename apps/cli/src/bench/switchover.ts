import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { requireInstallation } from '../installation/home'
import { type BenchReport, describeHost, figure } from './bench'
import { makePrivateInstallation, type PrivateInstallation } from './private-installation'
import { median } from './windows'
import { WriteLoad } from './write-load'

const CLIENTS = 4
const MEMBERS = ['bench', 'bench-2', 'bench-3']

type Shown = {
  cluster: {
    primaryInstanceId: string
    members: {
      instanceId: string
      name: string
      role: string | null
      state: string
      memberRole: string
      connection: { host: string; port: number } | null
    }[]
  }
  connections: { primary: { uri: string } } | null
}

/** A cluster of three on a private installation, with the verbs of this benchmark. */
class BenchCluster {
  readonly installation: PrivateInstallation
  readonly password: string
  readonly prefix: string
  uri = ''

  constructor(installation: PrivateInstallation, password: string) {
    this.installation = installation
    this.password = password
    this.prefix = requireInstallation(installation.home).enginePrefix
  }

  program = (name: string) => join(this.prefix, 'bin', name)

  async show(): Promise<Shown> {
    const shown = await this.installation.floe<Shown>('cluster', 'show', 'bench')
    this.uri = shown.connections?.primary.uri ?? this.uri
    return shown
  }

  async member(name: string) {
    const member = (await this.show()).cluster.members.find((m) => m.name === name)
    if (!member?.connection) throw fault('bench.no_member', `member "${name}" is not known`)
    return { ...member, connection: member.connection }
  }

  async primary(): Promise<string> {
    const { cluster } = await this.show()
    return cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)?.name ?? ''
  }

  /** Runs a statement by libpq's own way to the primary, or on one address. */
  psql(statement: string, uri = this.uri): { ok: boolean; output: string } {
    const r = spawnSync(this.program('psql'), ['-X', '-A', '-t', '-c', statement, uri], {
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      env: { PATH: process.env.PATH ?? '', PGPASSWORD: this.password, PGCONNECT_TIMEOUT: '5' },
    })
    return { ok: r.status === 0, output: `${r.stdout}${r.stderr}`.trim() }
  }

  must(statement: string): string {
    const { ok, output } = this.psql(statement)
    if (!ok) throw fault('bench.statement_failed', `"${statement}" failed`, { detail: output })
    return output
  }
}

/** Which acknowledged rows the primary does not have. */
function lostRows(cluster: BenchCluster, acknowledged: readonly string[]): string[] {
  const kept = new Set(cluster.must('select id from ledger').split('\n'))
  return acknowledged.filter((id) => !kept.has(id))
}

/** Kills the postmaster of a member, as the kernel would. */
async function killMember(cluster: BenchCluster, name: string): Promise<string> {
  const shown = await cluster.installation.floe<{ postmasterPid: number | null; directory: string }>(
    'instance',
    'show',
    name,
  )
  if (shown.postmasterPid === null) throw fault('bench.no_primary', `instance "${name}" does not run`)
  process.kill(shown.postmasterPid, 'SIGKILL')
  return shown.directory
}

/** Starts a fenced member by hand, tries to write to it, and stops it; true when it took the write. */
function takesWriteByHand(
  cluster: BenchCluster,
  directory: string,
  address: { host: string; port: number },
): boolean {
  const { uid, gid } = statSync(join(directory, 'pgdata'))
  const ctl = (...args: string[]) => {
    const command = [cluster.program('pg_ctl'), '-D', join(directory, 'pgdata'), ...args]
    const [file, ...rest] = command
    return spawnSync(file as string, rest, { cwd: '/', uid, gid, encoding: 'utf8', timeout: 60_000 })
  }
  const options = `-c port=${address.port} -c unix_socket_directories=''`
  ctl('-w', '-t', '20', '-l', join(directory, 'log/by-hand.log'), '-o', options, 'start')
  const uri = `postgresql://postgres@${address.host}:${address.port}/postgres`
  const { ok } = cluster.psql(`insert into ledger values ('by-hand-${Date.now()}')`, uri)
  ctl('-w', '-m', 'fast', 'stop')
  return ok
}

/**
 * Throws unless the fence of a failover found the killed primary still down. One that had come back would have taken the
 * clients' writes before any standby took over, and what was measured would be its restart.
 */
export function requireStillDown(former: string, result: Record<string, unknown> | null): void {
  const fenced = result?.[former] as { wasRunning?: boolean } | undefined
  if (fenced?.wasRunning === false) return
  throw fault('bench.came_back', `"${former}" was not down any more when it was fenced`, {
    detail:
      fenced?.wasRunning === true
        ? 'Clients could write to it before the standby took over.'
        : 'What the fence found is not known.',
  })
}

/**
 * What clients feel of a change of primary: a cluster of three with a synchronous standby, clients that write without a
 * pause over one connection string, and rounds of switchover, then of kill -9 of the primary with a failover by command.
 * `gap_ms` is the longest time between two acknowledged rows of any client; after a kill it counts from the command. The
 * agent does not start what was killed, which is checked in every round.
 */
export async function benchSwitchover(
  short: boolean,
  say: (line: string) => void,
  log: (line: string) => void,
): Promise<BenchReport> {
  const host = describeHost()
  const rounds = short ? 3 : 20
  say('bringing up a private installation')
  const installation = await makePrivateInstallation(log, { startCrashed: false })
  let load: WriteLoad | null = null
  try {
    const { password } = await installation.floe<{ password: string }>('instance', 'create', 'bench')
    const cluster = new BenchCluster(installation, password)
    for (const name of MEMBERS.slice(1)) {
      say(`creating standby ${name}`)
      await installation.floe('standby', 'create', 'bench', name)
    }
    await installation.floe('cluster', 'synchronous', 'bench', ...MEMBERS.slice(1), '--any', '1')
    await cluster.show()
    cluster.must('create table ledger (id text primary key)')
    load = new WriteLoad(cluster.program('psql'), () => cluster.uri, password, CLIENTS)
    await load.allWrite(30_000)

    const gaps: number[] = []
    for (let i = 0; i < rounds; i++) {
      load.reset()
      await installation.floe('cluster', 'switchover', 'bench')
      await load.allWrite(30_000)
      gaps.push(load.longestGap())
      say(`switchover ${i + 1} of ${rounds}: ${Math.round(gaps.at(-1) as number)} ms without a write`)
    }
    await load.stop()
    const rowsLost = lostRows(cluster, load.acknowledged).length
    const switchoverRows = load.acknowledged.length

    const failoverGaps: number[] = []
    let failoverLost = 0
    let failoverRows = 0
    let byHand = 0
    for (let i = 0; i < rounds; i++) {
      cluster.must('truncate ledger')
      load = new WriteLoad(cluster.program('psql'), () => cluster.uri, password, CLIENTS)
      await load.allWrite(30_000)
      const former = await cluster.primary()
      const { connection } = await cluster.member(former)
      const directory = await killMember(cluster, former)
      const deadline = performance.now() + 30_000
      while ((await cluster.member(former)).state !== 'crashed')
        if (performance.now() > deadline) throw fault('bench.not_seen', 'the crash was not seen within 30 s')
      const commanded = performance.now()
      const done = installation.floe<{ result: Record<string, unknown> | null }>(
        'cluster',
        'failover',
        'bench',
      )
      // its failure is told by the await below, also where it comes first
      done.catch(() => {})
      failoverGaps.push((await load.allWrite(60_000)) - commanded)
      requireStillDown(former, (await done).result)
      await load.stop()
      failoverLost += lostRows(cluster, load.acknowledged).length
      failoverRows += load.acknowledged.length
      if (takesWriteByHand(cluster, directory, connection)) byHand++
      await installation.floe('standby', 'rejoin', former)
      say(
        `failover ${i + 1} of ${rounds}: clients write ${Math.round(failoverGaps.at(-1) as number)} ms after the command`,
      )
    }
    return {
      bench: 'switchover',
      host,
      figures: [
        figure('rounds', rounds, '', { least: short ? 3 : 20 }),
        figure('rows_lost', rowsLost, 'rows', { most: 0 }),
        figure('gap_ms_median', median(gaps), 'ms', { most: 2_000 }),
        figure('gap_ms_worst', Math.max(...gaps), 'ms', { most: 5_000 }),
        figure('failover_rounds', failoverGaps.length, '', { least: short ? 3 : 20 }),
        figure('failover_acked_rows_lost', failoverLost, 'rows', { most: 0 }),
        figure('failover_gap_ms_median', median(failoverGaps), 'ms', { most: 5_000 }),
        figure('failover_gap_ms_worst', Math.max(...failoverGaps), 'ms', { most: 5_000 }),
        figure('writes_to_fenced_primary', byHand, '', { most: 0 }),
      ],
      detail: {
        clients: CLIENTS,
        switchoverRows,
        failoverRows,
        'gaps of switchovers (ms)': gaps,
        'gaps of failovers (ms)': failoverGaps,
      },
    }
  } finally {
    await load?.stop().catch(() => {})
    await installation.remove()
  }
}
