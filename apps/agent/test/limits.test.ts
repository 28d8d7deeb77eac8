import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { InstanceId, type LimitChanges, noLimits } from '@floe/domain'
import {
  directoryOf,
  groupsOf,
  parseGroupMounts,
  parseOwnGroups,
  secondsWaited,
} from '@floe/host/control-groups'
import { waitUntil } from '@floe/testkit'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readKernelLog } from '../src/host/kernel-log'
import { chooseLimitDriver } from '../src/host/limits/choose'
import { AgentFixture } from './agent-fixture'
import { mayMount, onAnotherDevice, run } from './another-device'

const MB = 1024 ** 2
const { driver, whyNot } = chooseLimitDriver('detached')
const usable = driver?.kind === 'cgroup-v1' && existsSync('/sys/fs/cgroup/blkio')

describe.skipIf(!usable)(
  `limits by cgroup v1${usable ? '' : ` (not here: ${whyNot?.message ?? driver?.kind})`}`,
  () => {
    let f: AgentFixture
    let id: string
    beforeAll(async () => {
      f = await AgentFixture.start(4)
      id = await f.create({ settings: { max_wal_size: '48MB', min_wal_size: '32MB', summarize_wal: 'on' } })
      await limit({ cpu: 0.5, dataWriteIops: 800 })
      await f.must({ kind: 'start-instance', instanceId: id })
    })
    afterAll(() => f.remove())

    const limit = (changes: LimitChanges, instanceId = id) =>
      f.must({ kind: 'limit-instance', instanceId, changes })
    const postmaster = async () => (await f.observed(id))?.postmasterPid as number
    const group = (pid: number, controller: string): string => {
      const mount = parseGroupMounts(readFileSync('/proc/self/mountinfo', 'utf8')).find((m) =>
        m.controllers.includes(controller),
      )
      return directoryOf(
        mount as NonNullable<typeof mount>,
        parseOwnGroups(groupsOf(pid)).get(controller) ?? '',
      )
    }
    /** Whether cgroup v2 is mounted beside v1 and counts how long processes wait. */
    const countsWaits = (() => {
      const v2 = parseGroupMounts(readFileSync('/proc/self/mountinfo', 'utf8')).find((m) => m.version === 2)
      return v2 !== undefined && existsSync(join(v2.path, 'io.pressure'))
    })()
    const value = (directory: string, file: string) => readFileSync(join(directory, file), 'utf8').trim()
    const limitsSeen = async (instanceId = id) => (await f.observed(instanceId))?.limits
    /** Direct children of the postmaster by the title that each has. */
    const titles = async () => {
      const own = await postmaster()
      return new Map(
        readdirSync('/proc')
          .filter((name) => /^\d+$/.test(name))
          .flatMap((pid) => {
            try {
              const parent = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
              const title = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0]?.trim() ?? ''
              return parent === own ? [[title, Number(pid)] as const] : []
            } catch {
              return []
            }
          }),
      )
    }
    const processNamed = async (part: RegExp) =>
      waitUntil(
        `a process ${part}`,
        async () => [...(await titles())].find(([t]) => part.test(t))?.[1] ?? null,
      )

    test('what was set before the start is in force from its first process on, and read back', async () => {
      const own = group(await postmaster(), 'cpu')
      expect(own).toMatch(new RegExp(`/floe/${id}$`))
      expect(value(own, 'cpu.cfs_quota_us')).toBe('50000')
      const seen = await waitUntil('limits are reported', async () => {
        const limits = await limitsSeen()
        return limits?.exempt.length === 4 ? limits : null
      })
      expect(seen).toMatchObject({
        driver: 'cgroup-v1',
        whyNot: null,
        inForce: { ...noLimits, cpu: 0.5, dataWriteIops: 800 },
        exempt: expect.arrayContaining(['checkpointer', 'WAL writer', 'WAL summarizer', 'logger']),
      })
      expect(seen.gaps).toEqual([{ limit: 'dataWriteIops', why: expect.stringContaining('not limited') }])
    })

    test('background processes are exempt of I/O limits only, sessions and what they start are not', async () => {
      const client = await f.connect(id)
      try {
        const { rows } = await client.query('select pg_backend_pid() as pid')
        const checkpointer = await processNamed(/checkpointer$/)
        expect(group(checkpointer, 'blkio')).toMatch(/-background$/)
        expect(group(checkpointer, 'cpu')).toBe(group(rows[0].pid, 'cpu'))
        expect(group(rows[0].pid, 'blkio')).toMatch(new RegExp(`/floe/${id}$`))
        await client.query('create temporary table seen (line text)')
        await client.query("copy seen from program 'cat /proc/self/cgroup'")
        const { rows: lines } = await client.query('select line from seen')
        const own = lines.map((r) => r.line).filter((line) => line.endsWith(`/floe/${id}`))
        // four controllers, and where the kernel counts waits if v2 is mounted beside them
        expect(own).toHaveLength(4 + (countsWaits ? 1 : 0))
      } finally {
        await client.end()
      }
    })

    test('a change holds within 2 s without a restart, and over restarts of the agent and of the engine', async () => {
      const before = await postmaster()
      const begun = performance.now()
      const { observed } = await limit({ cpu: null, dataReadIops: 300, memoryMax: 512 * MB })
      expect(performance.now() - begun).toBeLessThan(2_000)
      const wanted = { ...noLimits, dataWriteIops: 800, dataReadIops: 300, memoryMax: 512 * MB }
      expect(observed.inForce).toEqual(wanted)
      expect(await postmaster()).toBe(before)
      expect(value(group(before, 'memory'), 'memory.limit_in_bytes')).toBe(String(512 * MB))
      await f.agent.end('SIGKILL')
      await f.agent.start()
      await waitUntil('limits are known again', async () => (await limitsSeen())?.inForce ?? null)
      expect(await limitsSeen()).toMatchObject({ ordered: wanted, inForce: wanted })
      await f.must({ kind: 'restart-instance', instanceId: id, mode: 'immediate' })
      expect(group(await postmaster(), 'blkio')).toMatch(new RegExp(`/floe/${id}$`))
      await waitUntil('they are in force after the restart', async () => {
        const seen = await limitsSeen()
        return JSON.stringify(seen?.inForce) === JSON.stringify(wanted) || null
      })
    })

    test('how much waits to be written back past a limit of writes is told, and nothing where there is none', async () => {
      expect((await limitsSeen())?.ordered.dataWriteIops).toBe(800)
      await waitUntil('it is told', async () => {
        // again each time: anybody's sync may have written the last ones back before they were looked at
        await f.query(
          id,
          "copy (select 1) to program 'dd if=/dev/zero of=late.tmp bs=1M count=40 status=none'",
        )
        return ((await limitsSeen())?.unlimitedWriteBackBytes ?? 0) >= 32 * MB || null
      })
      await f.query(id, "copy (select 1) to program 'rm late.tmp'")
      await limit({ dataWriteIops: null })
      await waitUntil(
        'nothing is told any more',
        async () => (await limitsSeen())?.unlimitedWriteBackBytes === null || null,
      )
      await limit({ dataWriteIops: 800 })
    })

    test('what somebody else set in the kernel is set back', async () => {
      const own = group(await postmaster(), 'memory')
      writeFileSync(join(own, 'memory.limit_in_bytes'), '-1')
      await waitUntil(
        'the limit is back',
        async () => value(own, 'memory.limit_in_bytes') === String(512 * MB) || null,
      )
    })

    test('what cannot be is refused, and the earlier limits stay', async () => {
      const before = await limitsSeen()
      for (const [changes, code] of [
        [{ memoryMax: 8 * MB }, 'limit.out_of_range'],
        [{ memoryHigh: 600 * MB }, 'limit.high_above_max'],
      ] as const) {
        const status = await f.run({ kind: 'limit-instance', instanceId: id, changes })
        expect(status).toMatchObject({ state: 'failed', fault: { code } })
      }
      expect((await limitsSeen())?.ordered).toEqual(before?.ordered)
    })

    /** What a program of a session does to the data device in a while, as the kernel counts it, per second. */
    async function perSecond(program: string, what: 'Read' | 'Write'): Promise<number> {
      const own = group(await postmaster(), 'blkio')
      const count = () => {
        const text = value(own, 'blkio.throttle.io_serviced')
        return Number(new RegExp(`^\\d+:\\d+ ${what} (\\d+)`, 'm').exec(text)?.[1] ?? 0)
      }
      const [begun, before] = [performance.now(), count()]
      await f.query(id, `copy (select 1) to program '${program}'`)
      return ((count() - before) / (performance.now() - begun)) * 1_000
    }

    test.each([
      ['direct writes', 'Write', 'dd if=/dev/zero of=limit.tmp bs=8k count=240 oflag=direct'],
      ['fsynced writes', 'Write', 'dd if=/dev/zero of=limit.tmp bs=8k count=120 oflag=dsync'],
      ['direct reads', 'Read', 'dd if=limit.tmp of=/dev/null bs=4k count=240 iflag=direct'],
    ] as const)('%s keep to the limit within 5 %', async (_what, kind, program) => {
      const { observed } = await limit({ dataWriteIops: 80, dataReadIops: 80 })
      if (observed.devices.data === null) return
      const rate = await perSecond(`${program} status=none`, kind)
      expect(rate).toBeLessThan(80 * 1.05)
      // a busy machine may not get there, but what is limited gets near
      expect(rate).toBeGreaterThan(80 * 0.5)
    })

    test.skipIf(!countsWaits)(
      'how long a session waits for its limit of I/O is told, the checkpointer’s waits are not',
      async () => {
        const { observed } = await limit({ dataWriteIops: 40, dataReadIops: null })
        if (observed.devices.data === null) return
        const checkpointer = await processNamed(/checkpointer/)
        expect(group(checkpointer, '')).toMatch(new RegExp(`/floe/${id}-background$`))
        const own = group(await postmaster(), '')
        const waited = () => secondsWaited(value(own, 'io.pressure')) ?? Number.NaN
        const before = waited()
        const from = Date.now()
        await f.query(
          id,
          "copy (select 1) to program 'dd if=/dev/zero of=wait.tmp bs=8k count=120 oflag=direct status=none; rm wait.tmp'",
        )
        // 120 writes at 40 a second: most of three seconds
        expect(waited() - before).toBeGreaterThan(1)
        await waitUntil('a sample tells it', async () => {
          const { samples } = await f.read.telemetry.read.query({
            ...{ instanceId: InstanceId.parse(id), afterSeq: 0, limit: 3_600 },
          })
          return samples.some((s) => s.at > from && (s.values.io_stall ?? 0) > 0.5) || null
        })
      },
    )

    test('processor time keeps to the limit within 5 %', async () => {
      await limit({ cpu: 0.2, dataWriteIops: null, dataReadIops: null })
      const own = group(await postmaster(), 'cpuacct')
      const used = () => Number(value(own, 'cpuacct.usage')) / 1e6
      const [begun, before] = [performance.now(), used()]
      await f
        .query(id, 'set statement_timeout = 2500; select count(*) from generate_series(1, 1e9::bigint)')
        .catch(() => {})
      expect((used() - before) / (performance.now() - begun)).toBeLessThan(0.2 * 1.05)
      await limit({ cpu: null })
    })

    test('a new agent waits for the first answer of an instance that is short of processor time', async () => {
      const newest = async () => {
        const asked = { instanceId: InstanceId.parse(id), afterSeq: 1e9 }
        return (await f.read.telemetry.read.query(asked)).newestSeq ?? -1
      }
      const busy = await Promise.all([f.connect(id), f.connect(id)])
      const pids = await Promise.all(
        busy.map(async (c) => (await c.query('select pg_backend_pid() pid')).rows[0].pid),
      )
      const work = busy.map((c) =>
        c.query('select count(*) from generate_series(1, 1e10::bigint)').catch(() => {}),
      )
      await limit({ cpu: 0.05 })
      try {
        await f.agent.end('SIGKILL')
        await f.agent.start()
        const before = await newest()
        await waitUntil('samples come', async () => (await newest()) >= before + 3)
      } finally {
        await limit({ cpu: null })
        await f.query(id, `select pg_cancel_backend(pid) from unnest(array[${pids}]) pid`)
        await Promise.all(work)
        await Promise.all(busy.map((c) => c.end()))
      }
    })

    test('under a load that its limit of I/O throttles, WAL is recycled and every session goes on', async () => {
      await limit({ dataWriteIops: 60, dataReadIops: null, memoryMax: null })
      const clients = await Promise.all(Array.from({ length: 4 }, () => f.connect(id)))
      const watch = await f.connect(id)
      try {
        await watch.query('create table load (n bigint, filler text)')
        await watch.query("select pg_stat_reset_shared('checkpointer')")
        const commits = clients.map(() => 0)
        const until = performance.now() + 8_000
        const own = group(await postmaster(), 'blkio')
        const written = () =>
          Number(/^\d+:\d+ Write (\d+)/m.exec(value(own, 'blkio.throttle.io_serviced'))?.[1] ?? 0)
        const [begun, first] = [performance.now(), written()]
        const load = async (client: pg.Client, i: number) => {
          while (performance.now() < until) {
            await client.query("insert into load select g, repeat('x', 900) from generate_series(1, 900) g")
            commits[i] = (commits[i] as number) + 1
          }
        }
        // crashes meanwhile would be a fault of the load; its sessions are all that is limited
        await Promise.all(clients.map(load))
        const perSecond = ((written() - first) / (performance.now() - begun)) * 1_000
        expect(perSecond).toBeLessThan(60 * 1.05)
        expect(Math.min(...commits)).toBeGreaterThan(0)
        await waitUntil('a checkpoint was completed under load', async () => {
          const { rows } = await watch.query('select num_done from pg_stat_checkpointer')
          return Number(rows[0].num_done) > 0 || null
        })
        const { rows } = await watch.query('select sum(size)::float8 as size from pg_ls_waldir()')
        expect(rows[0].size).toBeLessThan(300 * MB)
      } finally {
        await Promise.all([...clients, watch].map((client) => client.end()))
        await limit({ dataWriteIops: null })
      }
    })

    test('the processes of a crash restart are put where they belong', async () => {
      const before = await processNamed(/checkpointer$/)
      process.kill(before, 'SIGKILL')
      const after = await waitUntil('another checkpointer', async () => {
        const pid = await processNamed(/checkpointer( performing.*)?$/)
        return pid !== before ? pid : null
      })
      await waitUntil('it is exempt', async () => group(after, 'blkio').endsWith('-background') || null)
    })

    test('memory near the limit is told before a kill, and a kill of one touches no other', async () => {
      const other = await f.createRunning()
      const own = await postmaster()
      const others = (await f.observed(other))?.postmasterPid
      const max = 384 * MB
      await limit({ memoryMax: max })
      const sessions = await Promise.all([f.connect(id), f.connect(id)])
      // their connections break when one is killed
      for (const session of sessions) session.on('error', () => {})
      const [first, second] = sessions as [pg.Client, pg.Client]
      const hold = (client: pg.Client, name: string, megabytes: number) =>
        client.query(`select length(set_config('floe.${name}', repeat('x', ${megabytes * MB}), false))`)
      const held = () => {
        const stat = value(group(own, 'memory'), 'memory.stat')
        return ['total_rss', 'total_shmem'].reduce(
          (sum, name) => sum + Number(new RegExp(`^${name} (\\d+)`, 'm').exec(stat)?.[1]),
          0,
        )
      }
      for (let i = 0; held() < max * 0.9; i++) await hold(first, `piece${i}`, held() < max * 0.7 ? 16 : 4)
      const seen = await waitUntil('it is told', async () => {
        const limits = await limitsSeen()
        return limits?.memoryNearLimit ? limits : null
      })
      expect(seen.outOfMemoryKills).toBe(0)
      expect(seen.lastMemoryKill).toBeNull()
      const from = Date.now()
      await hold(second, 'much', 200).catch(() => {})
      await waitUntil('a process was killed', async () => (await limitsSeen())?.outOfMemoryKills || null)
      const kill = (await limitsSeen())?.lastMemoryKill
      // the kernel's clock of its log is not exactly that of the day
      expect(kill?.at).toBeGreaterThan(from - 10_000)
      if (readKernelLog() !== null)
        expect(kill).toMatchObject({ process: { name: 'postgres' }, cause: 'limit' })
      expect((await f.observed(other))?.postmasterPid).toBe(others)
      expect(await f.query(other, 'select 1 as one')).toEqual([{ one: 1 }])
      expect(await postmaster()).toBe(own)
      await Promise.all(sessions.map((session) => session.end().catch(() => {})))
      await limit({ memoryMax: null })
      await f.waitForState(id, 'running')
      // the next agent knows it still
      await f.agent.end('SIGKILL')
      await f.agent.start()
      const again = await waitUntil('limits are known again', async () => (await limitsSeen()) ?? null)
      expect(again.lastMemoryKill).toEqual(kill)
    }, 240_000)

    /** Direct writes a second that a session's program gets into a file. */
    async function writesTo(instanceId: string, file: string, writes: number): Promise<number> {
      const begun = performance.now()
      const dd = `dd if=/dev/zero of=${file} bs=8k count=${writes} oflag=direct status=none`
      await f.query(instanceId, `copy (select 1) to program '${dd}'`)
      return (writes / (performance.now() - begun)) * 1_000
    }

    test.skipIf(!mayMount)('WAL on a device of its own has limits of its own', { timeout: 240_000 }, () =>
      onAnotherDevice(async ({ mounted, device }) => {
        const instanceId = await f.create({ settings: { max_wal_size: '48MB', min_wal_size: '32MB' } })
        const link = join(f.dataDirectory(instanceId), 'pg_wal')
        run('cp', '-a', link, join(mounted, 'wal'))
        run('rm', '-r', link)
        run('ln', '-s', join(mounted, 'wal'), link)
        await limit({ walWriteIops: 60 }, instanceId)
        await f.must({ kind: 'start-instance', instanceId })
        const seen = await waitUntil('its devices are known', async () => {
          const limits = await limitsSeen(instanceId)
          return limits?.devices.wal && limits.inForce ? limits : null
        })
        expect(seen.devices.wal).toBe(device)
        expect(seen.devices.data).not.toBe(device)
        expect(seen.inForce).toEqual({ ...noLimits, walWriteIops: 60 })
        expect(seen.gaps.map((gap) => gap.why).join()).not.toContain('with the data')
        const from = Date.now()
        expect(await writesTo(instanceId, 'pg_wal/limited.tmp', 180)).toBeLessThan(60 * 1.1)
        expect(await writesTo(instanceId, 'free.tmp', 400)).toBeGreaterThan(60 * 1.1)
        await waitUntil('a sample tells what the WAL device did', async () => {
          const { samples } = await f.read.telemetry.read.query({
            ...{ instanceId: InstanceId.parse(instanceId), afterSeq: 0, limit: 3_600 },
          })
          return (
            samples.some(
              ({ at, values }) =>
                at > from && (values.wal_device_writes ?? 0) > 20 && values.wal_device_write_limit === 60,
            ) || null
          )
        })
        await f.must({ kind: 'stop-instance', instanceId, mode: 'immediate' })
      }),
    )

    test.skipIf(!mayMount)(
      'a tablespace on another device has the limits of data',
      { timeout: 240_000 },
      () =>
        onAnotherDevice(async ({ mounted }) => {
          const instanceId = await f.createRunning()
          await limit({ dataWriteIops: 60 }, instanceId)
          const space = join(mounted, 'space')
          mkdirSync(space)
          const { uid, gid } = f.userOf(instanceId)
          chownSync(space, uid, gid)
          await f.query(instanceId, `create tablespace elsewhere location '${space}'`)
          const own = group((await f.observed(instanceId))?.postmasterPid as number, 'blkio')
          await waitUntil('it is limited', async () => {
            const limited = value(own, 'blkio.throttle.write_iops_device').split('\n')
            return limited.length === 2 && limited.every((line) => line.endsWith(' 60')) ? limited : null
          })
          expect(await writesTo(instanceId, join(space, 'limited.tmp'), 180)).toBeLessThan(60 * 1.1)
          expect((await limitsSeen(instanceId))?.inForce?.dataWriteIops).toBe(60)
          await f.must({ kind: 'stop-instance', instanceId, mode: 'immediate' })
        }),
    )

    test('an instance that has ended leaves no group', async () => {
      const own = group(await postmaster(), 'cpu')
      await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
      await waitUntil('its group is gone', async () => !existsSync(own) || null)
      expect((await limitsSeen())?.inForce).toBeNull()
    }, 240_000)
  },
)
