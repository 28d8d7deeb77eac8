import { expect, test } from '@playwright/test'
import { floe, floeJson, runProgram } from '../fixtures/floe-command'
import { createInstance, engineProgram, restInstances, sql } from '../fixtures/instance'
import { openInstance, shownNumber } from '../fixtures/instance-page'
import { startLoad } from '../fixtures/load'
import { signIn } from '../fixtures/owner'

test.afterAll(restInstances)

type Status = { processes: { name: string; state: string; pid: number | null }[] }
type Operation = { state: string; steps: { name: string; attempt: number }[] }
type TailLine = { seq: number; at: number; intervalMs: number }

/** Kills a process of the installation and waits until another one runs in its place. */
async function killAndAwait(victim: 'web' | 'controller' | 'agent'): Promise<void> {
  const seen = async () => (await floeJson<Status>('status')).processes.find((p) => p.name === victim)
  const before = await seen()
  process.kill(before?.pid as number, 'SIGKILL')
  await expect
    .poll(
      async () => {
        const now = await seen()
        return now?.state === 'running' && now.pid !== before?.pid
      },
      { message: `${victim} is started again by itself`, timeout: 60_000, intervals: [500] },
    )
    .toBe(true)
}

for (const victim of ['web', 'controller', 'agent'] as const) {
  test(`kill -9 of ${victim} under load: the instance runs on, no sample is lost, the chart resumes`, async ({
    page,
  }) => {
    const name = `kill-${victim}`
    const instance = await createInstance(name)
    await runProgram(engineProgram('pgbench'), ['-i', '-s', '2', '-q', instance.connectionString])
    const load = startLoad(instance.connectionString, { clients: 2 })
    try {
      const started = await sql(instance.connectionString, 'SELECT pg_postmaster_start_time()')
      await signIn(page)
      await openInstance(page, name)
      await expect.poll(() => shownNumber(page, 'tps'), { timeout: 20_000 }).toBeGreaterThan(1)
      const firstSeq = (
        JSON.parse(
          (await floe('telemetry', 'tail', name, '--json', '--seconds', '1')).split('\n')[0] as string,
        ) as TailLine
      ).seq

      await killAndAwait(victim)

      // the page is not reloaded: it must go on by itself
      const killedAt = Date.now()
      await expect
        .poll(() => page.getByTestId('sample-age').getAttribute('data-sample-at').then(Number), {
          timeout: 60_000,
        })
        .toBeGreaterThan(killedAt + 5_000)
      expect(await sql(instance.connectionString, 'SELECT pg_postmaster_start_time()')).toBe(started)

      const kept = (await floe('telemetry', 'history', name, '--json', '--minutes', '5'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as TailLine)
        .filter((s) => s.seq >= firstSeq)
      expect(kept.length).toBeGreaterThan(5)
      expect(kept.map((s) => s.seq)).toEqual(kept.map((_, i) => firstSeq + i))
      // every moment is covered by some sample's interval: nothing went by unmeasured
      for (let i = 1; i < kept.length; i++) {
        const [a, b] = [kept[i - 1] as TailLine, kept[i] as TailLine]
        expect(b.intervalMs).toBeGreaterThanOrEqual(b.at - a.at - 1_500)
      }
      const output = load.output()
      expect(output).not.toContain('aborted')
    } finally {
      await load.stop()
    }
  })
}

test('kill -9 of web, again and again, while a standby is created: it is created once, and its page follows to the end', async ({
  page,
}) => {
  const instance = await createInstance('kill-once')
  await sql(
    instance.connectionString,
    'CREATE TABLE copied AS SELECT n, md5(n::text) || md5((n + 1)::text) AS t FROM generate_series(1, 500000) n',
  )
  await signIn(page)
  const { operationId } = await floeJson<{ operationId: string }>(
    'standby',
    'create',
    'kill-once',
    'kill-once-2',
    '--no-wait',
  )
  await page.goto(`${process.env.FLOE_E2E_URL}/operations/${operationId}`)
  await expect(page.getByRole('heading', { name: /Create standby/ })).toBeVisible()
  for (let kills = 0; kills < 3; kills++) await killAndAwait('web')
  // the page is not reloaded
  await expect(page.getByText('succeeded', { exact: true }).first()).toBeVisible({ timeout: 60_000 })
  const operation = await floeJson<Operation>('operation', 'show', operationId)
  expect(operation.state).toBe('succeeded')
  expect(operation.steps.filter((step) => step.attempt > 1)).toEqual([])
  const { cluster } = await floeJson<{ cluster: { members: { name: string; role: string | null }[] } }>(
    'cluster',
    'show',
    'kill-once',
  )
  expect(cluster.members.map((m) => [m.name, m.role])).toEqual([
    ['kill-once', 'primary'],
    ['kill-once-2', 'standby'],
  ])
})
