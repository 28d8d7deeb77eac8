// Runs in a guest of the infra suite (apps/cli/infra/guest-limits.test.ts), which has cgroup v2: sets limits of a real
// instance by the agent as it ships, and prints what each of them let through, a line of JSON a figure.

import { spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TaskInput, TaskKey, TaskStatus } from '@floe/agent-contract'
import { createAgentClient } from '@floe/agent-contract/client'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { formatFault, type LimitChanges, type LimitName, limitNames } from '@floe/domain'
import { firstProcess } from '@floe/host/process-facts'
import { makeThrowawayHome, ThrowawayAgent, testEnginePrefix, waitUntil } from '@floe/testkit'
import pg from 'pg'

const MB = 1024 ** 2
const PASSWORD = 'open sesame'
/** An emulated processor starts a program in seconds. */
const PATIENCE_MS = 900_000
const WINDOW_MS = 8_000
/** What an emulated disk does on a busy machine, too. */
const IOPS = 40

const print = (kind: string, what: object) => console.log(`${kind} ${JSON.stringify(what)}`)
const round = (n: number, digits = 1) => Number(n.toFixed(digits))
const until = <T>(what: string, look: Parameters<typeof waitUntil<T>>[1], patienceMs = PATIENCE_MS) =>
  waitUntil(what, look, patienceMs, 50)
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const [disk = '/data', bundle = ''] = process.argv.slice(2)
const home = await makeThrowawayHome({ instances: 2, overrides: { instancesDirectory: join(disk, 'i') } })
const isSystemd = firstProcess() === 'systemd'
// without systemd in a group that is not the root of all, as a container or a script of init has it
const BOX = '/sys/fs/cgroup/box'
const agent = new ThrowawayAgent(home, bundle, (command) =>
  isSystemd ? [...command] : ['sh', '-c', `echo $$ >${BOX}/cgroup.procs; exec "$@"`, 'sh', ...command],
)
if (!isSystemd) {
  mkdirSync(BOX)
  writeFileSync('/sys/fs/cgroup/cgroup.subtree_control', '+cpu +memory +io')
}
const client = createAgentClient({ ...home.endpoint('task'), timeoutMs: 300_000 }).trpc

async function must(task: object): Promise<unknown> {
  const key: TaskKey = { operationId: randomUUID(), step: 'step', attempt: 1 }
  await client.task.start.mutate({ key, task: task as TaskInput })
  const status = await until<TaskStatus>('a task ends', async () => {
    const seen = await client.task.check.query({ key })
    return seen.state !== 'running' && seen.state !== 'not-started' ? seen : null
  })
  if (status.state !== 'succeeded')
    throw new Error(
      `${JSON.stringify(task)} ${status.state}: ${status.fault ? formatFault(status.fault) : ''}`,
    )
  return status.result
}

async function observed(instanceId: string) {
  const report = await client.report.read.query({ after: null })
  const seen = report.instances.find((i) => i.instanceId === instanceId)
  if (!seen) throw new Error('the instance is not in the report')
  return seen
}

/** An instance with the verbs that are measured. */
class Measured {
  readonly id = randomUUID()
  port = 0
  pid = 0

  static async start(settings: Record<string, string>): Promise<Measured> {
    const m = new Measured()
    const { id: instanceId } = m
    const ownerPasswordVerifier = scramVerifier(PASSWORD)
    const name = `t-${instanceId.slice(0, 8)}`
    await must({ kind: 'create-instance', instanceId, name, settings, ownerPasswordVerifier })
    await must({ kind: 'start-instance', instanceId })
    await m.seen()
    return m
  }

  async seen() {
    const seen = await observed(this.id)
    this.port = seen.port
    this.pid = seen.postmasterPid ?? 0
    return seen
  }

  limit(changes: LimitChanges) {
    return must({ kind: 'limit-instance', instanceId: this.id, changes })
  }

  /** Takes every limit away, and has what was written written back. */
  async unlimit() {
    await this.limit(Object.fromEntries(limitNames.map((name) => [name, null])))
    spawnSync('sync')
  }

  async connect(): Promise<pg.Client> {
    const c = new pg.Client({
      host: '127.0.0.1',
      port: this.port,
      user: 'postgres',
      database: 'postgres',
      password: PASSWORD,
    })
    c.on('error', () => {})
    await c.connect()
    return c
  }

  async query<T>(sql: string): Promise<T[]> {
    const c = await this.connect()
    try {
      return (await c.query(sql)).rows as T[]
    } finally {
      await c.end()
    }
  }

  /** What a session starts is limited as the session is. */
  run(program: string): Promise<unknown> {
    return this.query(`copy (select 1) to program '${program.replaceAll("'", "''")}'`)
  }

  /** The group of a process. */
  static leaf(pid: number): string {
    const path = /^0::(.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, 'utf8'))?.[1] ?? ''
    return join('/sys/fs/cgroup', path)
  }

  get group(): string {
    return dirname(Measured.leaf(this.pid))
  }

  file(name: string): string {
    return readFileSync(join(this.group, name), 'utf8')
  }

  number(file: string, name: string): number {
    return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(this.file(file))?.[1] ?? Number.NaN)
  }

  /** Direct children of the postmaster by their titles. */
  titles(): Map<string, number> {
    return new Map(
      readdirSync('/proc').flatMap((pid) => {
        try {
          const parent = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
          const title = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0]?.trim() ?? ''
          return parent === this.pid ? [[title, Number(pid)] as const] : []
        } catch {
          return []
        }
      }),
    )
  }
}

type Io = 'readIops' | 'writeIops' | 'readBytes' | 'writeBytes'
const words = { readIops: 'rios', writeIops: 'wios', readBytes: 'rbytes', writeBytes: 'wbytes' } as const
const device = (() => {
  const { dev } = statSync(disk)
  return { number: `${(dev >> 8) & 0xfff}:${dev & 0xff}`, major: (dev >> 8) & 0xfff, minor: dev & 0xff }
})()

/** What a group did to the device, or what the device did in all, whoever asked for it. */
function counted(where: string | 'device', what: Io): number {
  if (where === 'device') {
    const line = readFileSync('/proc/diskstats', 'utf8')
      .split('\n')
      .map((l) => l.trim().split(/\s+/).map(Number))
      .find(([major, minor]) => major === device.major && minor === device.minor)
    const at = { readIops: 3, readBytes: 5, writeIops: 7, writeBytes: 9 }[what]
    return (line?.[at] ?? Number.NaN) * (what.endsWith('Bytes') ? 512 : 1)
  }
  const stat = readFileSync(join(where, 'io.stat'), 'utf8')
  return Number(new RegExp(`^${device.number} .*\\b${words[what]}=(\\d+)`, 'm').exec(stat)?.[1] ?? 0)
}

/** Flushes of the device: a limit of write IOPS counts each as a write, which neither group nor device do. */
function flushes(): number {
  const line = readFileSync('/proc/diskstats', 'utf8')
    .split('\n')
    .map((l) => l.trim().split(/\s+/).map(Number))
    .find(([major, minor]) => major === device.major && minor === device.minor)
  return line?.[18] ?? Number.NaN
}

/** Something counted, per second, over a while that begins now. */
async function perSecond(count: () => number, ms = WINDOW_MS): Promise<number> {
  const [begun, before] = [performance.now(), count()]
  await pause(ms)
  return ((count() - before) / (performance.now() - begun)) * 1_000
}

async function step(name: string, body: () => Promise<object>): Promise<void> {
  const begun = performance.now()
  print('begun', { name })
  try {
    const figures = await body()
    print('figure', { name, ...figures, took: round((performance.now() - begun) / 1_000, 0) })
  } catch (error) {
    const reason = error instanceof Error ? `${error.message} ${error.cause ?? ''}` : String(error)
    print('failed', { name, reason })
  }
}

const fio = (how: string, seconds = 16) =>
  `fio --name=t --thread --filename=guest.tmp --size=128m --time_based --runtime=${seconds} --output=fio.out ${how}`

/** Sets one limit of I/O, lets a session's program run against it, and counts what passes while it does. */
async function io(
  m: Measured,
  what: Io,
  limit: number,
  program: string,
  { settleMs = 2_000, windowMs = WINDOW_MS } = {},
) {
  const name = `data${what[0]?.toUpperCase()}${what.slice(1)}` as LimitName
  const sessions = Measured.leaf(m.pid)
  const background = join(m.group, 'background')
  await m.limit({ [name]: limit })
  const before = counted(sessions, what)
  const load = m.run(program)
  load.catch(() => {})
  try {
    const some = what.endsWith('Bytes') ? 256 * 1_024 : 10
    await until('it reads or writes', () => counted(sessions, what) > before + some)
    await pause(settleMs)
    const places = { sessions, background, device: 'device' }
    const [flushRate, ...rates] = await Promise.all([
      perSecond(flushes, windowMs),
      ...Object.entries(places).map(
        async ([place, where]) =>
          [place, round(await perSecond(() => counted(where, what), windowMs))] as const,
      ),
    ])
    return { limit, ...Object.fromEntries(rates), flushes: round(flushRate) }
  } finally {
    await m.unlimit()
    await load
  }
}

/** Seconds from an order until what is counted keeps to the new limit for a second, within 5 %. */
async function untilInForce(order: () => Promise<unknown>, count: () => number, from: number, to: number) {
  const samples: [number, number][] = []
  let sampling = true
  const sampler = (async () => {
    while (sampling) {
      samples.push([performance.now(), count()])
      await pause(50)
    }
  })()
  await pause(1_500)
  const begun = performance.now()
  await order()
  const ordered = performance.now()
  await pause(4_500)
  sampling = false
  await sampler
  const rateFrom = (at: number) => {
    const first = samples.find(([t]) => t >= at)
    const last = samples.find(([t]) => t >= at + 1_000)
    return first && last ? ((last[1] - first[1]) / (last[0] - first[0])) * 1_000 : null
  }
  const held = (rate: number | null) => rate !== null && (to > from ? rate >= to * 0.95 : rate <= to * 1.05)
  const at = samples.find(([t]) => t >= begun && held(rateFrom(t)))?.[0]
  return {
    orderSeconds: round((ordered - begun) / 1_000, 2),
    effectSeconds: at === undefined ? null : round((at - begun) / 1_000, 2),
  }
}

let m: Measured
let other: Measured
await step('start', async () => {
  agent.startUnseen()
  await until('the agent answers', async () => (await client.report.read.query({ after: null })) !== null)
  const settings = { shared_buffers: '64MB', max_wal_size: '48MB', min_wal_size: '32MB' }
  m = await Measured.start(settings)
  other = await Measured.start(settings)
  const seen = await until('its processes are placed', async () => {
    const { limits } = await m.seen()
    return limits && limits.exempt.length >= 3 ? limits : null
  })
  return {
    kernel: readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim(),
    driver: seen.driver,
    whyNot: seen.whyNot,
    exempt: seen.exempt,
    devices: seen.devices,
    group: m.group,
    controllers: ['', 'sessions', 'background'].map((leaf) =>
      m.file(join(leaf, 'cgroup.controllers')).trim(),
    ),
  }
})

await step('placement', async () => {
  const c = await m.connect()
  try {
    const [{ pid }] = (await c.query('select pg_backend_pid() as pid')).rows as [{ pid: number }]
    const of = (title: RegExp) => [...m.titles()].find(([t]) => title.test(t))?.[1] ?? 0
    const where = (p: number) => Measured.leaf(p).slice(m.group.length)
    return {
      session: where(pid),
      checkpointer: where(of(/checkpointer/)),
      walWriter: where(of(/walwriter/)),
      backgroundWriter: where(of(/background writer/)),
    }
  } finally {
    await c.end()
  }
})

await step('a file', async () => {
  const how = '--rw=write --bs=1m --end_fsync=1'
  await m.run(`fio --name=t --thread --filename=guest.tmp --size=128m --output=fio.out ${how}`)
  return { bytes: counted(Measured.leaf(m.pid), 'writeBytes') }
})

const direct = '--direct=1 --ioengine=psync'
// the page cache is written back in few and large requests: it takes a while until they are even
const buffered = { settleMs: 8_000, windowMs: 24_000 }
const all: [string, Io, number, string, typeof buffered?][] = [
  ['direct reads', 'readIops', IOPS, fio(`${direct} --rw=randread --bs=8k`)],
  ['direct writes', 'writeIops', IOPS, fio(`${direct} --rw=randwrite --bs=8k`)],
  ['direct reads', 'readBytes', MB, fio(`${direct} --rw=read --bs=128k`)],
  ['direct writes', 'writeBytes', MB, fio(`${direct} --rw=write --bs=128k`)],
  ['fsynced writes', 'writeIops', IOPS, fio('--ioengine=psync --fsync=1 --rw=randwrite --bs=8k')],
  ['fsynced writes', 'writeBytes', MB, fio('--ioengine=psync --fsync=1 --rw=write --bs=128k')],
  ['buffered reads', 'readBytes', MB, fio('--ioengine=psync --invalidate=1 --rw=read --bs=128k --loops=9')],
  ['buffered writes', 'writeIops', IOPS, fio('--ioengine=psync --rw=randwrite --bs=8k', 40), buffered],
  ['buffered writes', 'writeBytes', MB, fio('--ioengine=psync --rw=write --bs=128k', 40), buffered],
]
for (const [how, what, limit, program, patience] of all)
  await step(`${how}, ${what}`, () => io(m, what, limit, program, patience))

await step('a change of write IOPS', async () => {
  await m.limit({ dataWriteIops: IOPS })
  const sessions = Measured.leaf(m.pid)
  const count = () => counted(sessions, 'writeIops')
  const before = count()
  const load = m.run(fio(`${direct} --rw=randwrite --bs=8k`, 20))
  load.catch(() => {})
  try {
    await until('it writes', () => count() > before + IOPS)
    const up = await untilInForce(() => m.limit({ dataWriteIops: 2 * IOPS }), count, IOPS, 2 * IOPS)
    const down = await untilInForce(() => m.limit({ dataWriteIops: IOPS }), count, 2 * IOPS, IOPS)
    return { up, down }
  } finally {
    await m.unlimit()
    await load
  }
})

const burn = (seconds: number) => `timeout ${seconds} sh -c 'while :; do :; done' || true`
const processorSeconds = () => m.number('cpu.stat', 'usage_usec') / 1e6
for (const [limit, burners] of [
  [0.3, 1],
  [0.7, 2],
] as const)
  await step(`processors, ${burners} at once`, async () => {
    await m.limit({ cpu: limit })
    const loads = Array.from({ length: burners }, () => m.run(burn(14)))
    await pause(3_000)
    const cores = round(await perSecond(processorSeconds), 4)
    await Promise.all(loads)
    await m.unlimit()
    return { limit, cores }
  })

await step('a change of processors', async () => {
  await m.limit({ cpu: 0.2 })
  const load = m.run(burn(22))
  await pause(3_000)
  const up = await untilInForce(() => m.limit({ cpu: 0.5 }), processorSeconds, 0.2, 0.5)
  const down = await untilInForce(() => m.limit({ cpu: 0.2 }), processorSeconds, 0.5, 0.2)
  await m.unlimit()
  await load
  return { up, down }
})

const pgbench = (...args: string[]) =>
  new Promise<string>((resolve, reject) => {
    const child = spawn(
      join(testEnginePrefix(), 'bin/pgbench'),
      ['-h', '127.0.0.1', '-p', String(m.port), '-U', 'postgres', ...args, 'postgres'],
      { env: { ...process.env, PGPASSWORD: PASSWORD }, stdio: ['ignore', 'pipe', 'pipe'] },
    )
    let out = ''
    for (const s of [child.stdout, child.stderr]) s.on('data', (text) => (out += text))
    child.once('close', (status) => (status === 0 ? resolve(out) : reject(new Error(out))))
  })
const tps = (out: string) => round(Number(/^tps = ([\d.]+)/m.exec(out)?.[1]))
await step('pgbench', async () => {
  // less than the emulated processors get to write
  const limit = IOPS / 4
  await pgbench('-q', '-i', '-s', '5')
  const free = await pgbench('-c', '4', '-T', '10', '-P', '1')
  await m.query('checkpoint')
  spawnSync('sync')
  await m.limit({ dataWriteIops: limit })
  const sessions = Measured.leaf(m.pid)
  const background = join(m.group, 'background')
  await m.query("select pg_stat_reset_shared('checkpointer')")
  const running = pgbench('-c', '4', '-T', '24', '-P', '1')
  running.catch(() => {})
  await pause(6_000)
  const [wios, exempt, device] = await Promise.all([
    perSecond(() => counted(sessions, 'writeIops'), 12_000),
    perSecond(() => counted(background, 'writeIops'), 12_000),
    perSecond(() => counted('device', 'writeIops'), 12_000),
  ])
  const out = await running
  const progress = [...out.matchAll(/^progress: .* ([\d.]+) tps/gm)].map((p) => Number(p[1]))
  await m.unlimit()
  return {
    limit,
    tpsWithout: tps(free),
    tps: tps(out),
    slowestSecondTps: Math.min(...progress.slice(2, -1)),
    sessions: round(wios),
    background: round(exempt),
    device: round(device),
  }
})

await step('checkpoints under a limit', async () => {
  await m.limit({ dataWriteIops: IOPS })
  await m.query('create table load (n bigint, filler text)')
  await m.query("select pg_stat_reset_shared('checkpointer')")
  const clients = await Promise.all(Array.from({ length: 4 }, () => m.connect()))
  const commits = clients.map(() => 0)
  const end = performance.now() + 30_000
  let longest = 0
  await Promise.all(
    clients.map(async (c, i) => {
      for (let last = performance.now(); last < end; ) {
        await c.query("insert into load select g, repeat('x', 900) from generate_series(1, 900) g")
        commits[i] = (commits[i] ?? 0) + 1
        const now = performance.now()
        longest = Math.max(longest, now - last)
        last = now
      }
    }),
  )
  const begun = performance.now()
  await m.query('checkpoint')
  const checkpointSeconds = round((performance.now() - begun) / 1_000)
  const [done] = await m.query<{ n: number }>('select num_done::int as n from pg_stat_checkpointer')
  const [wal] = await m.query<{ mb: number }>(
    'select round(sum(size) / 1048576)::int as mb from pg_ls_waldir()',
  )
  await Promise.all(clients.map((c) => c.end()))
  await m.unlimit()
  return {
    limit: IOPS,
    fewestCommits: Math.min(...commits),
    longestSeconds: round(longest / 1_000),
    checkpointSeconds,
    checkpoints: done?.n,
    walMb: wal?.mb,
  }
})

await step('memory', async () => {
  const [high, max] = [224 * MB, 288 * MB]
  const before = other.pid
  await m.limit({ memoryHigh: high, memoryMax: max })
  const c = await m.connect()
  let piece = 0
  const held = () => m.number('memory.stat', 'anon') + m.number('memory.stat', 'shmem')
  const hold = async (megabytes: number) => {
    const begun = performance.now()
    await c.query(`select length(set_config('floe.piece${piece++}', repeat('x', ${megabytes * MB}), false))`)
    return performance.now() - begun
  }
  let below = 0
  while (held() < high * 0.9) below = await hold(4)
  const heldAtAlarm = held()
  const begun = performance.now()
  const told = await until('it is told', async () => {
    const { limits } = await m.seen()
    return limits?.memoryNearLimit ? limits : null
  })
  const alarmSeconds = round((performance.now() - begun) / 1_000)
  const events = () => ({
    high: m.number('memory.events', 'high'),
    kills: m.number('memory.events', 'oom_kill'),
  })
  const atAlarm = { ...events(), killsTold: told.outOfMemoryKills }
  // from high on it is slowed down, not killed
  let above = 0
  const slow = (async () => {
    for (let i = 0; i < 12; i++) above = Math.max(above, await hold(4))
  })()
  slow.catch(() => {})
  await Promise.race([slow, pause(20_000)])
  const aboveHigh = {
    ...events(),
    heldMb: round(held() / MB),
    slowest4MbMs: round(above),
    fast4MbMs: round(below),
  }
  // without high it runs into max; memory.peak knows more than was used since the limit was set
  await m.limit({ memoryHigh: null })
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(most, Number(m.file('memory.current')))
  }, 50)
  const pid = m.pid
  const second = await m.connect().catch(() => null)
  const many = async (client: pg.Client | null) => {
    for (let i = 0; i < 64; i++)
      await client?.query(`select length(set_config('floe.more${i}', repeat('x', ${4 * MB}), false))`)
  }
  await Promise.all([slow.catch(() => {}), many(second).catch(() => {})])
  const killed = await until('a process was killed', async () => (await m.seen()).limits?.outOfMemoryKills)
  clearInterval(watch)
  await until('it runs again', () => m.query('select 1'))
  const same = {
    postmaster: (await m.seen()).postmasterPid === pid,
    other: (await other.seen()).postmasterPid === before,
  }
  const [one] = await other.query<{ one: number }>('select 1 as one')
  const figures = {
    highMb: high / MB,
    maxMb: max / MB,
    heldAtAlarmMb: round(heldAtAlarm / MB),
    alarmSeconds,
    atAlarm,
    aboveHigh,
    killed,
    mostMb: round(most / MB),
    otherKills: other.number('memory.events', 'oom_kill'),
    otherAnswers: one?.one === 1,
    same,
  }
  await c.end().catch(() => {})
  await second?.end().catch(() => {})
  await m.unlimit()
  return figures
})

await step('crash restart', async () => {
  const of = (title: RegExp) => [...m.titles()].find(([t]) => title.test(t))?.[1] ?? 0
  const before = of(/checkpointer/)
  process.kill(before, 'SIGKILL')
  const after = await until('another checkpointer', () => {
    const pid = of(/checkpointer/)
    return pid !== 0 && pid !== before ? pid : null
  })
  const begun = performance.now()
  await until('it is exempt', () => Measured.leaf(after).endsWith('/background'))
  return { exemptAfterSeconds: round((performance.now() - begun) / 1_000) }
})

/** Groups that were left, each with who is in it. */
const leftIn = (group: string): string[] =>
  ['', 'sessions', 'background']
    .map((leaf) => join(group, leaf))
    .filter((directory) => existsSync(directory))
    .map((directory) => {
      const pids = readFileSync(join(directory, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean)
      const who = pids.map((pid) =>
        readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(0, 4).join(' '),
      )
      return `${directory} [${who.join('; ')}]`
    })

await step('end', async () => {
  const group = m.group
  await must({ kind: 'stop-instance', instanceId: m.id, mode: 'fast' })
  await until('its group is gone', () => !existsSync(group), 60_000).catch((error) => {
    throw new Error(`${String(error)}: ${leftIn(group).join(', ')}`)
  })
  await must({ kind: 'stop-instance', instanceId: other.id, mode: 'fast' })
  return { gone: true }
})
await agent.end()
process.exit(0)
