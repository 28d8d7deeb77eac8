import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@playwright/test'
import { floe, runProgram } from '../fixtures/floe-command'
import { createInstance, engineProgram, sql } from '../fixtures/instance'
import { startLoad } from '../fixtures/load'

type TailLine = { seq: number; at: number; intervalMs: number; values: Record<string, number | null> }

test('telemetry agrees with pgbench within 5 % over 30 s, and a checkpoint with the server log', async () => {
  const demo = await createInstance('agrees')
  await runProgram(engineProgram('pgbench'), ['-i', '-s', '5', '-q', demo.connectionString])
  const load = startLoad(demo.connectionString, { perSecond: 300, seconds: 40 })
  // the first seconds hold pgbench's connecting; compare the 30 after them
  await expect
    .poll(() => load.output().match(/^progress: /gm)?.length ?? 0, { timeout: 15_000 })
    .toBeGreaterThanOrEqual(3)
  const from = load.output().match(/^progress: /gm)?.length ?? 0
  const tail = (await floe('telemetry', 'tail', 'agrees', '--json', '--seconds', '30'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as TailLine)
  const printed = [...load.output().matchAll(/^progress: ([\d.]+) s, ([\d.]+) tps/gm)]
    .slice(from, from + 30)
    .map((m) => Number(m[2]))
  await load.stop()

  const covered = tail.reduce((sum, s) => sum + s.intervalMs, 0)
  const ours = tail.reduce((sum, s) => sum + (s.values.tps ?? 0) * s.intervalMs, 0) / covered
  const theirs = printed.reduce((sum, tps) => sum + tps, 0) / printed.length
  expect(tail.length).toBeGreaterThanOrEqual(25)
  expect(tail.map((s) => s.seq)).toEqual(tail.map((_, i) => (tail[0] as TailLine).seq + i))
  expect(
    Math.abs(ours - theirs) / theirs,
    `telemetry ${ours.toFixed(0)} tps, pgbench ${theirs.toFixed(0)} tps`,
  ).toBeLessThan(0.05)

  await sql(demo.connectionString, 'CHECKPOINT')
  type Checkpoint = {
    buffersWritten: number
    totalMs: number
    syncFiles: number
    distanceBytes: number
    redoLsn: string
  }
  let newest: Checkpoint | undefined
  await expect
    .poll(
      async () => {
        const rows = JSON.parse(await floe('telemetry', 'checkpoints', 'agrees', '--json')) as Checkpoint[]
        newest = rows[0]
        const lines = readdirSync(join(demo.directory, 'log'))
          .filter((f) => f.endsWith('.log'))
          .flatMap((f) => readFileSync(join(demo.directory, 'log', f), 'utf8').split('\n'))
          .filter((l) => l.includes('checkpoint complete:'))
        const line = lines.at(-1) ?? ''
        const m = line.match(
          /wrote (\d+) buffers.*total=([\d.]+) s; sync files=(\d+).*distance=(\d+) kB.*redo lsn=([0-9A-F/]+)/,
        )
        return (
          m !== null &&
          newest !== undefined &&
          newest.buffersWritten === Number(m[1]) &&
          Math.round(newest.totalMs) === Math.round(Number(m[2]) * 1000) &&
          newest.syncFiles === Number(m[3]) &&
          newest.distanceBytes === Number(m[4]) * 1024 &&
          newest.redoLsn === m[5]
        )
      },
      { message: 'the newest checkpoint equals the last line of the server log', timeout: 15_000 },
    )
    .toBe(true)
})
