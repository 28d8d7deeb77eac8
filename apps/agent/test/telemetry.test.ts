import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { isContinuous, SAMPLE_INTERVAL_MS, type Sample } from '@floe/telemetry'
import { testEnginePrefix, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture, asInstanceId } from './agent-fixture'

let f: AgentFixture
let id: string
beforeAll(async () => {
  f = await AgentFixture.start()
  id = await f.createRunning()
  await pgbench(['-i', '-s', '3', '-q'])
})
afterAll(() => f.remove())

/** Runs pgbench against the instance until it ends or the signal is aborted; what it printed. */
async function pgbench(args: string[], until?: AbortSignal): Promise<string> {
  const port = String((await f.observed(id))?.port)
  return new Promise((resolve, reject) => {
    const child = spawn(
      join(testEnginePrefix(), 'bin', 'pgbench'),
      ['-h', '127.0.0.1', '-p', port, '-U', 'postgres', ...args, 'postgres'],
      {
        env: { ...process.env, PGPASSWORD: 'open sesame' },
      },
    )
    let text = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (more: string) => {
        text += more
      })
    until?.addEventListener('abort', () => child.kill())
    child.once('error', reject)
    child.once('close', (status) =>
      status === 0 || until?.aborted ? resolve(text) : reject(new Error(text)),
    )
  })
}

const samplesAfter = async (seq: number): Promise<Sample[]> =>
  (await f.read.telemetry.read.query({ instanceId: asInstanceId(id), afterSeq: seq, limit: 3_600 }))
    .samples as Sample[]
const newestSeq = async () =>
  (await f.read.telemetry.read.query({ instanceId: asInstanceId(id), afterSeq: 1e9 })).newestSeq ?? -1
/** Transactions that samples stand for: rates times the time they cover. */
const transactions = (samples: Sample[]) =>
  samples.reduce((sum, s) => sum + (s.values.xact_commit ?? 0) * (s.intervalMs / 1_000), 0)
/** Rows that pgbench left so far, one a transaction; only `-n` keeps a run from emptying the table first. */
const counted = async () =>
  Number((await f.query<{ n: string }>(id, 'select count(*) as n from pgbench_history'))[0]?.n)

describe('samples', () => {
  test('come once a second and are complete', async () => {
    const before = await newestSeq()
    const samples = await waitUntil('five samples', async () => {
      const s = await samplesAfter(before)
      return s.length >= 5 ? s : null
    })
    // a tick may be late and the one after it short, but no second holds two
    const covered = samples.reduce((ms, s) => ms + s.intervalMs, 0)
    expect(covered).toBeGreaterThan((samples.length - 1) * SAMPLE_INTERVAL_MS)
    for (const [i, s] of samples.entries()) {
      expect(s.seq).toBe(before + 1 + i)
      for (const name of [
        'tps',
        'wal_bytes',
        'io_read_bytes',
        'disk_free',
        'process_memory',
        'connections_max',
      ] as const)
        expect([name, typeof s.values[name]]).toEqual([name, 'number'])
      for (const [name, value] of Object.entries(s.values))
        expect([name, (value as number) >= 0]).toEqual([name, true])
    }
  })

  test('of an idle instance show no transactions: the agent’s own are taken off', async () => {
    await f.query(id, 'alter system set autovacuum = off')
    await f.query(id, 'select pg_reload_conf()')
    try {
      await waitUntil('autovacuum has ended', async () => {
        const workers = `select from pg_stat_activity where backend_type like 'autovacuum%'`
        return (await f.query(id, workers)).length === 0
      })
      const before = await newestSeq()
      // the agent asks more every five seconds, and again every ten
      const samples = await waitUntil('samples', async () => {
        const s = await samplesAfter(before + 3)
        return s.length >= 11 ? s : null
      })
      expect(samples.map((s) => s.values.tps)).toEqual(samples.map(() => 0))
    } finally {
      await f.query(id, 'alter system reset autovacuum')
      await f.query(id, 'select pg_reload_conf()')
    }
  })

  test('agree with pgbench within 5 percent', async () => {
    const rows = await counted()
    const before = await newestSeq()
    const text = await pgbench(['-n', '-c', '4', '-j', '2', '-T', '8', '-P', '1'])
    const done = (await counted()) - rows
    expect(done).toBeGreaterThan(0)
    // backends report at most a second late; the two samples after the end hold the rest
    const end = await newestSeq()
    await waitUntil('the last reports', async () => (await newestSeq()) >= end + 3)
    const seen = transactions(await samplesAfter(before))
    expect(text).toContain('progress:')
    expect(Math.abs(seen - done) / done).toBeLessThan(0.05)
  })

  test('lose nothing when the agent is killed under load: numbers go on and the time is covered', async () => {
    const rows = await counted()
    const before = await newestSeq()
    const load = pgbench(['-n', '-c', '2', '-T', '10'])
    for (const waits of [2, 3]) {
      const from = await newestSeq()
      await waitUntil(`${waits} samples`, async () => (await newestSeq()) >= from + waits)
      await f.agent.end('SIGKILL')
      await f.agent.start()
    }
    await load
    const end = await newestSeq()
    await waitUntil('the last reports', async () => (await newestSeq()) >= end + 3)
    const samples = await samplesAfter(before)
    expect(samples.map((s) => s.seq)).toEqual(samples.map((_, i) => before + 1 + i))
    for (let i = 1; i < samples.length; i++)
      expect(isContinuous(samples[i - 1] as Sample, samples[i] as Sample)).toBe(true)
    const done = (await counted()) - rows
    expect(done).toBeGreaterThan(0)
    expect(Math.abs(transactions(samples) - done) / done).toBeLessThan(0.05)
  })

  test('an agent that stood still reads the answer that waited for it: the engine was not silent', async () => {
    const session = async () => {
      const sql = `select pid from pg_stat_activity where application_name = 'floe agent'`
      return (await f.query<{ pid: number }>(id, sql)).map(({ pid }) => pid)
    }
    const [pid] = (await session()) as [number]
    const told = f.agent.output.length
    const stoodMs = 7_000
    process.kill(pid, 'SIGSTOP')
    try {
      await waitUntil('the agent asks it', async () => {
        const newest = (await samplesAfter((await newestSeq()) - 1)).at(-1)
        return newest && Date.now() - newest.at > 2 * SAMPLE_INTERVAL_MS
      })
      process.kill(f.agent.pid, 'SIGSTOP')
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    const since = performance.now()
    await waitUntil(
      'it stood still for longer than an engine may be silent',
      () => performance.now() - since > stoodMs,
    )
    process.kill(f.agent.pid, 'SIGCONT')
    const before = await newestSeq()
    await waitUntil('samples go on', async () => (await newestSeq()) >= before + 2)
    expect(await session()).toEqual([pid])
    expect(f.agent.output.slice(told)).not.toContain('instance.moved')
  })

  test('have no negative rate when statistics are reset', async () => {
    const before = await newestSeq()
    await f.query(id, "select pg_stat_reset(), pg_stat_reset_shared('wal'), pg_stat_reset_shared('io')")
    const samples = await waitUntil('samples over the reset', async () => {
      const s = await samplesAfter(before)
      return s.length >= 4 ? s : null
    })
    for (const s of samples)
      for (const [name, value] of Object.entries(s.values))
        expect([name, (value as number) >= 0]).toEqual([name, true])
    expect(samples.some((s) => s.values.wal_bytes === undefined)).toBe(true)
  })

  test('stop while the instance is stopped and go on with the next number after it', async () => {
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    const last = await newestSeq()
    await f.must({ kind: 'start-instance', instanceId: id })
    const next = await waitUntil('the next sample', async () => (await samplesAfter(last))[0])
    expect(next.seq).toBe(last + 1)
    expect(next.intervalMs).toBeLessThan(5_000)
  })
})

describe('the stream', () => {
  test('begins after the number given and has no gap, also over a death of the agent', async () => {
    const from = (await newestSeq()) - 3
    const seen: number[] = []
    const subscription = f.read.telemetry.stream.subscribe(
      { instanceId: asInstanceId(id), lastEventId: String(from) },
      { onData: (event) => seen.push((event as { data: Sample }).data.seq) },
    )
    await waitUntil('history and live', () => seen.length >= 5)
    await f.agent.end('SIGKILL')
    await f.agent.start()
    await waitUntil('it goes on', () => seen.length >= 10, 30_000)
    subscription.unsubscribe()
    expect(seen).toEqual(seen.map((_, i) => from + 1 + i))
  })
})

describe('checkpoints', () => {
  const read = () => f.read.checkpoint.read.query({ instanceId: asInstanceId(id), afterSeq: 0, limit: 1_000 })
  /** The complete lines in the server's plain log, as people read it. */
  const logged = () => {
    const directory = `${f.installation.instancesDirectory}/${id}/log`
    return readdirSync(directory)
      .filter((n) => n.startsWith('engine-') && n.endsWith('.log'))
      .sort()
      .flatMap((n) => readFileSync(join(directory, n), 'utf8').split('\n'))
      .filter((line) => line.includes('checkpoint complete:'))
  }

  test('are those of the server log, number by number', async () => {
    await f.query(id, 'create table if not exists ballast as select generate_series(1, 20000) as n')
    await f.query(id, 'checkpoint')
    const { checkpoints } = await waitUntil('the checkpoint', async () => {
      const r = await read()
      // both may lack the newest line for a moment
      const newest = r.checkpoints.at(-1)?.reasons.includes('force')
      return newest && r.checkpoints.length === logged().length ? r : null
    })
    const lines = logged()
    checkpoints.forEach((c, i) => {
      const line = lines[i] as string
      expect(line).toContain(`wrote ${c.buffersWritten} buffers (${c.buffersPercent.toFixed(1)}%)`)
      expect(line).toContain(
        `write=${(c.writeMs / 1_000).toFixed(3)} s, sync=${(c.syncMs / 1_000).toFixed(3)} s`,
      )
      expect(line).toContain(`total=${(c.totalMs / 1_000).toFixed(3)} s; sync files=${c.syncFiles}`)
      expect(line).toContain(`distance=${c.distanceBytes / 1_024} kB, estimate=${c.estimateBytes / 1_024} kB`)
      expect(line).toContain(`lsn=${c.lsn}, redo lsn=${c.redoLsn}`)
      expect(c.seq).toBe(i + 1)
    })
    expect(checkpoints.at(-1)?.reasons).toContain('wait')
  })

  test('are neither lost nor repeated over deaths of the agent', async () => {
    const before = (await read()).checkpoints.length
    for (let i = 0; i < 3; i++) {
      await f.agent.end('SIGKILL')
      const client = await connectWithoutAgent()
      await client.query('checkpoint')
      await client.end()
      await f.agent.start()
    }
    const { checkpoints } = await waitUntil('all of them', async () => {
      const r = await read()
      return r.checkpoints.length >= before + 3 ? r : null
    })
    expect(checkpoints.length).toBe(logged().length)
    expect(checkpoints.map((c) => c.seq)).toEqual(checkpoints.map((_, i) => i + 1))
  })

  let port = 0
  async function connectWithoutAgent() {
    const { default: pg } = await import('pg')
    const client = new pg.Client({
      host: '127.0.0.1',
      port,
      user: 'postgres',
      password: 'open sesame',
      database: 'postgres',
    })
    await client.connect()
    return client
  }
  beforeAll(async () => {
    port = (await f.observed(id))?.port as number
  })
})

describe('of our engine', () => {
  test('full-page images are a share of the WAL, and what full-page writes off saves is counted', async () => {
    const imagesOf = async () => {
      await f.query(id, 'checkpoint')
      const before = await newestSeq()
      await pgbench(['-c', '2', '-T', '3'])
      const end = await newestSeq()
      await waitUntil('the last reports', async () => (await newestSeq()) >= end + 2)
      const samples = await samplesAfter(before)
      const sum = (name: 'wal_bytes' | 'wal_fpi_bytes' | 'wal_fpi_omitted_bytes') =>
        samples.reduce((n, x) => n + (x.values[name] ?? 0) * (x.intervalMs / 1_000), 0)
      expect(samples.every((x) => typeof x.values.wal_fpi_bytes === 'number')).toBe(true)
      return {
        written: sum('wal_fpi_bytes') / sum('wal_bytes'),
        saved: sum('wal_fpi_omitted_bytes') / sum('wal_bytes'),
      }
    }
    const on = await imagesOf()
    await f.must({
      kind: 'change-settings',
      instanceId: id,
      // the guard would have images written, because there is no page repair source
      changes: [
        { name: 'full_page_writes', value: 'off' },
        { name: 'polar_page_repair_guard', value: 'off' },
      ],
    })
    const off = await imagesOf()
    expect(on.written).toBeGreaterThan(0.2)
    expect(on.written).toBeLessThanOrEqual(1)
    expect(on.saved).toBe(0)
    expect(off.written).toBeLessThan(on.written / 4)
    expect(off.saved).toBeGreaterThan(0.2)
  })

  test('a running checkpoint tells how far it is', async () => {
    await f.must({
      kind: 'change-settings',
      instanceId: id,
      changes: [
        { name: 'checkpoint_timeout', value: '30s' },
        { name: 'checkpoint_completion_target', value: '0.9' },
      ],
    })
    const seen = new AbortController()
    const load = pgbench(['-c', '1', '-T', '60'], seen.signal)
    const running = await waitUntil(
      'a timed checkpoint writes',
      async () => {
        const r = await f.read.checkpoint.read.query({ instanceId: asInstanceId(id), afterSeq: 1e6 })
        return r.running?.phase === 'write' && r.running.buffersProcessed ? r.running : null
      },
      50_000,
    )
    expect(running).toMatchObject({ kind: 'checkpoint', reasons: ['time'], targetMs: 27_000 })
    expect(running.buffersTotal).toBeGreaterThanOrEqual(running.buffersProcessed as number)
    const [sample] = (await samplesAfter((await newestSeq()) - 1)) as [Sample]
    expect(sample.values.checkpoint_running).toBe(1)
    seen.abort()
    await load
  }, 90_000)
})

describe('/metrics', () => {
  const get = (identity: string | undefined) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const { authority } = f.agent.home
      const url = `${f.agent.home.agentUrl}/metrics`
      request(url, { ca: authority.certificate, cert: identity, key: identity, agent: false }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (more: string) => {
          text += more
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      })
        .on('error', reject)
        .end()
    })

  test('has postgres_exporter’s names with the instance as label, and needs a certificate of the console', async () => {
    expect((await get(undefined)).status).toBe(401)
    const { status, text } = await get(f.agent.home.identities.read)
    expect(status).toBe(200)
    const instance = `instance="t-${id.slice(0, 8)}"`
    expect(text).toContain(`pg_up{${instance}} 1`)
    expect(text).toMatch(
      new RegExp(`pg_stat_database_xact_commit_total\\{${instance},datid="\\d+",datname="postgres"\\} \\d+`),
    )
    expect(text).toMatch(new RegExp(`pg_stat_checkpointer_num_requested_total\\{${instance}\\} \\d+`))
    expect(text).toMatch(/floe_agent_resident_memory_bytes \d+/)
    expect(text).toMatch(/floe_agent_heap_used_bytes \d+\n[\s\S]*floe_agent_heap_committed_bytes \d+/)
    expect(text.endsWith('# EOF\n')).toBe(true)
  })
})
