import { chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { InstanceId } from '@floe/domain'
import { parseGroupMounts } from '@floe/host/control-groups'
import type { StallRecord } from '@floe/telemetry'
import { waitUntil } from '@floe/testkit'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chooseLimitDriver } from '../src/host/limits/choose'
import { AgentFixture } from './agent-fixture'
import { mayMount, onAnotherDevice, run } from './another-device'

let f: AgentFixture
let id: string
let load: { stop(): Promise<void> }
beforeAll(async () => {
  f = await AgentFixture.start(2)
  id = await f.createRunning()
  await f.query(id, 'create table load (client int, n bigint)')
  load = await commitAlways(3)
})
afterAll(async () => {
  await load?.stop()
  await f?.remove()
})

/** Sessions that commit one row after the other: work that a stall stops. */
async function commitAlways(sessions: number) {
  const clients = await Promise.all(Array.from({ length: sessions }, () => f.connect(id)))
  let stopped = false
  const each = async (client: pg.Client, i: number) => {
    for (let n = 0; !stopped; n++) await client.query('insert into load values ($1, $2)', [i, n])
  }
  const done = Promise.all(clients.map(each))
  return {
    stop: async () => {
      stopped = true
      await done.catch(() => {})
      await Promise.all(clients.map((c) => c.end()))
    },
  }
}
const read = (afterStallSeq: number) =>
  f.read.checkpoint.read.query({ instanceId: InstanceId.parse(id), afterSeq: 0, afterStallSeq })
const committed = async () =>
  Number((await f.query<{ n: string }>(id, 'select count(*) as n from load'))[0]?.n)
/** A busy machine may have stalled by itself: what counts is what is found from now on. */
const newest = async () => (await read(0)).stalls.at(-1)?.seq ?? 0

/** Waits until a stall with a cause, and what else is told of it, has been found and has ended, after what `during` does. */
async function stallOf(
  cause: string,
  during: () => Promise<() => Promise<void>>,
  told: (stall: StallRecord) => boolean = () => true,
) {
  const isIt = (s: StallRecord) => s.cause === cause && told(s)
  const before = await newest()
  const rows = await committed()
  await waitUntil('work is committed', async () => (await committed()) > rows || null)
  const end = await during()
  try {
    await waitUntil(`a stall by ${cause} is found`, async () => {
      const { runningStall, stalls } = await read(before)
      return [...stalls, ...(runningStall ? [runningStall] : [])].some(isIt) || null
    })
  } finally {
    await end()
  }
  return waitUntil('it has ended', async () => {
    const found = (await read(before)).stalls.find(isIt)
    return found ?? null
  })
}

test('a lock; what the agent itself asks every few seconds does not end the stall', async () => {
  const stall = await stallOf(
    'lock',
    async () => {
      const client = await f.connect(id)
      await client.query('begin')
      await client.query('lock table load in exclusive mode')
      return () => client.end()
    },
    (s) => s.endedAt - s.startedAt > 7_000,
  )
  expect(stall).toMatchObject({ sessions: 3, device: null, checkpointerStopped: false })
  expect(stall.waits[0]).toMatchObject({ type: 'Lock', event: 'relation' })
})

test('it is a stall from the length on that was set, which the next agent goes by, too', async () => {
  const set = (afterMs: number | null) => f.must({ kind: 'set-stall-length', instanceId: id, afterMs })
  expect(await set(null)).toEqual({ stallAfterMs: 1_000 })
  expect(await set(3_000)).toEqual({ stallAfterMs: 3_000 })
  const stall = await stallOf('lock', async () => {
    const client = await f.connect(id)
    await client.query('begin')
    await client.query('lock table load in exclusive mode')
    return () => client.end()
  })
  expect(stall.endedAt - stall.startedAt).toBeGreaterThanOrEqual(3_000)
  await f.agent.end('SIGKILL')
  await f.agent.start()
  await waitUntil('it is told', async () => (await f.observed(id))?.stallAfterMs === 3_000 || null)
  await set(null)
  await waitUntil(
    'it is the host’s again',
    async () => (await f.observed(id))?.stallAfterMs === 1_000 || null,
  )
})

test('a frozen checkpointer', async () => {
  const stall = await stallOf('checkpointer', async () => {
    const [{ pid }] = (await f.query(
      id,
      `select pid from pg_stat_activity where backend_type = 'checkpointer'`,
    )) as [{ pid: number }]
    await load.stop()
    const client = await f.connect(id)
    process.kill(pid, 'SIGSTOP')
    const waiting = client.query('checkpoint')
    return async () => {
      process.kill(pid, 'SIGCONT')
      await waiting
      await client.end()
      load = await commitAlways(3)
    }
  })
  expect(stall.checkpointerStopped).toBe(true)
  expect(stall.waits[0]).toMatchObject({ type: 'IPC' })
})

test.skipIf(!mayMount)('a checkpointer that hangs in the kernel', { timeout: 240_000 }, () =>
  onAnotherDevice(async ({ mounted }) => {
    const space = join(mounted, 'space')
    mkdirSync(space)
    const { uid, gid } = f.userOf(id)
    chownSync(space, uid, gid)
    await f.query(id, `create tablespace elsewhere location '${space}'`)
    try {
      await f.query(id, 'create table hung tablespace elsewhere as select n from generate_series(1, 2000) n')
      await f.query(id, 'checkpoint')
      const stall = await stallOf(
        'checkpointer',
        async () => {
          await load.stop()
          await f.query(id, 'update hung set n = n + 1')
          const client = await f.connect(id)
          run('fsfreeze', '--freeze', mounted)
          const waiting = client.query('checkpoint')
          return async () => {
            run('fsfreeze', '--unfreeze', mounted)
            await waiting
            await client.end()
            load = await commitAlways(3)
          }
        },
        (s) => s.checkpointerHangsIn !== null,
      )
      expect(stall.checkpointerStopped).toBe(false)
      expect(stall.waits[0]).toMatchObject({ type: 'IPC' })
    } finally {
      await f.query(id, 'drop table if exists hung')
      await f.query(id, 'drop tablespace elsewhere')
    }
  }),
)

const { driver } = chooseLimitDriver('detached')

test.skipIf(!driver)('a throttled device', async (context) => {
  const limit = (dataWriteIops: number | null) =>
    f.must({ kind: 'limit-instance', instanceId: id, changes: { dataWriteIops } })
  const { observed } = await limit(10)
  if (observed.devices.data === null) return context.skip('the data lies on no device that can be limited')
  await limit(null)
  const stall = await stallOf('limited-device', async () => {
    await limit(10)
    // a queue that takes seconds at ten writes a second, and every commit stands at its end
    const client = await f.connect(id)
    const writer = 'dd if=/dev/zero of=stall-$i.tmp bs=8k count=5 oflag=direct status=none'
    const much = client.query(
      `copy (select 1) to program 'for i in $(seq 30); do ${writer} & done; wait; rm -f stall-*.tmp'`,
    )
    return async () => {
      await limit(null)
      await much
      await client.end()
    }
  })
  expect(stall.device).toBe(observed.devices.data)
})

/** Whether cgroup v2 is mounted beside v1, where the kernel counts how long groups wait; v2 itself always does. */
const countsWaits =
  driver?.kind !== 'cgroup-v1' ||
  parseGroupMounts(readFileSync('/proc/self/mountinfo', 'utf8')).some(
    (m) => m.version === 2 && existsSync(join(m.path, 'io.pressure')),
  )

test.skipIf(!driver || !mayMount || !countsWaits)(
  'a limit of bytes that holds one large write back for seconds',
  { timeout: 240_000 },
  () =>
    onAnotherDevice(async ({ mounted, device }) => {
      const own = await AgentFixture.start(1, undefined, { instancesDirectory: join(mounted, 'instances') })
      try {
        const instanceId = await own.createRunning()
        await own.query(instanceId, 'create table load (n int)')
        await own.must({
          kind: 'limit-instance',
          instanceId,
          changes: { dataWriteBytes: 1024 ** 2 },
        })
        const [large, small] = await Promise.all([own.connect(instanceId), own.connect(instanceId)])
        const write = large.query(
          "copy (select 1) to program 'dd if=/dev/zero of=large.tmp bs=8M count=1 oflag=direct status=none; rm large.tmp'",
        )
        let written = false
        write.finally(() => {
          written = true
        })
        for (let n = 0; !written; n++) await small.query('insert into load values ($1)', [n])
        await write
        await small.query('insert into load values (-1)')
        const stall = await waitUntil('the stall has ended', async () => {
          const { stalls } = await own.read.checkpoint.read.query({
            ...{ instanceId: InstanceId.parse(instanceId), afterSeq: 0, afterStallSeq: 0 },
          })
          const long = stalls.find((s) => s.endedAt - s.startedAt > 3_000)
          if (long) return long
          throw new Error(JSON.stringify(stalls))
        })
        expect(stall).toMatchObject({ cause: 'limited-device', device })
        await Promise.all([large.end(), small.end()])
      } finally {
        await own.remove()
      }
    }),
)

test('stalls outlive the agent', async () => {
  await load.stop()
  const before = (await read(0)).stalls
  expect(before.length).toBeGreaterThan(0)
  await f.agent.end('SIGKILL')
  f.agent.startUnseen()
  const answer = () => read(0).catch(() => null)
  const after = await waitUntil('it answers', async () => (await answer())?.stalls ?? null, 50_000)
  expect(after.slice(0, before.length)).toEqual(before)
})
