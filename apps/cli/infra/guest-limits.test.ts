import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emptyDisk, guest, here, runGuest } from './guest/machine'

const checkout = join(import.meta.dirname, '../../..')
const MINUTE_MS = 60_000

// biome-ignore lint/suspicious/noExplicitAny: what the program in the guest prints
type Figures = Map<string, any>

/** The agent as it ships limits a real instance on a real NVMe disk; test/guest/limits.ts of the agent measures there. */
describe.skipIf(guest === '')(`limits on cgroup v2${here}`, () => {
  let room: string
  beforeAll(async () => {
    room = mkdtempSync(join(tmpdir(), 'floe-guest-limits-'))
    const program = join(room, 'program.js')
    await build({
      absWorkingDir: join(checkout, 'apps/agent'),
      entryPoints: ['test/guest/limits.ts'],
      outfile: program,
      bundle: true,
      platform: 'node',
      target: 'node22',
      format: 'esm',
      external: ['pg-native'],
      logLevel: 'warning',
      // packages written for CommonJS still ask for require
      banner: {
        js: "import { createRequire as floeRequire } from 'node:module'; const require = floeRequire(import.meta.url);",
      },
    })
    const prefix = process.env.FLOE_TEST_ENGINE_PREFIX ?? ''
    execFileSync(join(import.meta.dirname, 'guest/build-root'), [guest, prefix, program], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }, 20 * MINUTE_MS)
  afterAll(() => rmSync(room, { recursive: true, force: true }))

  async function measure(append: string): Promise<Figures> {
    const data = join(room, 'data')
    rmSync(data, { force: true })
    emptyDisk(data, 3_072)
    const figures: Figures = new Map()
    const failed: string[] = []
    const { status, said } = await runGuest({
      memoryMegabytes: 2_048,
      append: `root=/dev/nvme0n1 rw ${append}`,
      disks: [
        { serial: 'root', path: join(guest, 'root'), keeps: false },
        { serial: 'data', path: data },
      ],
      boundMs: 40 * MINUTE_MS,
      onLine: (line) => {
        const [, kind, json] = /^(figure|failed) (\{.*\})$/.exec(line) ?? []
        if (!json) return
        console.log(line)
        const { name, ...rest } = JSON.parse(json)
        if (kind === 'failed') failed.push(`${name}: ${rest.reason}`)
        else figures.set(name, rest)
      },
    })
    expect([status, said]).toEqual([0, expect.stringMatching(/^it ended with 0$/m)])
    expect(failed).toEqual([])
    return figures
  }

  test.each([
    ['cgroup-v2', 'init=/opt/floe/limits'],
    ['systemd', ''],
  ])(
    'by %s hold within 5 %%, and from 2 s after an order on',
    async (driver, append) => {
      const of = await measure(append)
      expect(of.get('start')).toMatchObject({ driver, whyNot: null })
      expect(of.get('placement')).toEqual(
        expect.objectContaining({
          session: '/sessions',
          checkpointer: '/background',
          walWriter: '/background',
        }),
      )
      const within = (name: string, measured: number, limit: number) =>
        expect([name, measured / limit < 1.05 && measured / limit > 0.95, measured]).toEqual([
          name,
          true,
          measured,
        ])
      const reads = ['direct reads, readIops', 'direct reads, readBytes', 'buffered reads, readBytes']
      const writes = ['direct', 'fsynced', 'buffered'].flatMap((how) =>
        ['writeIops', 'writeBytes'].map((what) => `${how} writes, ${what}`),
      )
      for (const name of [...reads, ...writes]) {
        const { limit, sessions, flushes } = of.get(name)
        if (name !== 'fsynced writes, writeIops') within(name, sessions, limit)
        else {
          // a flush of its own counts as a write for the limit, one that a write of the journal asks for does not
          expect([name, sessions < limit * 1.05, sessions]).toEqual([name, true, sessions])
          expect([name, sessions + flushes > limit * 0.95, flushes]).toEqual([name, true, flushes])
        }
      }
      for (const name of ['processors, 1 at once', 'processors, 2 at once'])
        within(name, of.get(name).cores, of.get(name).limit)
      for (const name of ['a change of write IOPS', 'a change of processors'])
        for (const direction of ['up', 'down']) {
          const { effectSeconds } = of.get(name)[direction]
          expect([name, direction, effectSeconds !== null && effectSeconds <= 2]).toEqual([
            name,
            direction,
            true,
          ])
        }
      const bench = of.get('pgbench')
      expect(bench.sessions).toBeLessThan(bench.limit * 1.05)
      expect(bench.tps).toBeLessThan(bench.tpsWithout)
      // nobody waits for good: sessions go on, checkpoints end, and WAL is recycled
      const under = of.get('checkpoints under a limit')
      expect(under.fewestCommits).toBeGreaterThan(0)
      expect(under.checkpoints).toBeGreaterThan(0)
      expect(under.walMb).toBeLessThan(300)
      const memory = of.get('memory')
      expect(memory.atAlarm).toMatchObject({ kills: 0, killsTold: 0 })
      expect(memory.aboveHigh).toMatchObject({ kills: 0 })
      expect(memory.aboveHigh.high).toBeGreaterThan(0)
      expect(memory.killed).toBeGreaterThan(0)
      within('memory', memory.mostMb, memory.maxMb)
      expect(memory).toMatchObject({
        otherKills: 0,
        otherAnswers: true,
        same: { postmaster: true, other: true },
      })
      expect(of.get('end')).toMatchObject({ gone: true })
    },
    45 * MINUTE_MS,
  )
})
