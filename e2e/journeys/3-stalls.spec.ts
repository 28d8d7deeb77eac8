import { expect, test } from '@playwright/test'
import { floe } from '../fixtures/floe-command'
import { createInstance, sql } from '../fixtures/instance'
import { looksRight } from '../fixtures/looks-right'
import { signIn } from '../fixtures/owner'

test('a stall is marked on the chart of transactions, and listed with what it waited for', async ({
  page,
}) => {
  const { connectionString } = await createInstance('stalling')
  await sql(connectionString, 'create table waited (n int)')
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/stalling`)
  await expect(page.getByText('No stall in this range')).toBeVisible({ timeout: 30_000 })
  const holds = sql(
    connectionString,
    'begin; lock table waited in exclusive mode; select pg_sleep(6); commit',
  )
  const held = `select count(*) from pg_locks where relation = 'waited'::regclass and mode = 'ExclusiveLock' and granted`
  await expect.poll(() => sql(connectionString, held), { timeout: 20_000 }).toBe('1')
  await Promise.all([holds, ...[1, 2].map((n) => sql(connectionString, `insert into waited values (${n})`))])
  const row = page.getByRole('table', { name: 'Stalls', exact: true }).getByRole('row', { name: /a lock/ })
  await expect(row.first()).toContainText('Lock:relation', { timeout: 60_000 })
  await expect(page.getByText('stall', { exact: true })).toBeVisible()
  await looksRight(page, 'stalls')
  expect(await floe('telemetry', 'stalls', 'stalling')).toMatch(/a lock +Lock:relation/)
})
