import { expect, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floe } from '../fixtures/floe-command'
import { createInstance, restInstances, sql } from '../fixtures/instance'
import { looksRight } from '../fixtures/looks-right'
import { signIn } from '../fixtures/owner'

test.describe.configure({ mode: 'serial' })
test.afterAll(restInstances)

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

test('from when on work without a commit is a stall is set on its card, and by the command line', async ({
  page,
}) => {
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/stalling`)
  const length = (words: string) => page.getByText(`A stall is work without a commit for ${words} or longer.`)
  await expect(length('1.0 s')).toBeVisible({ timeout: 30_000 })
  await page.getByRole('button', { name: 'Set length' }).click()
  const dialog = page.getByRole('dialog', { name: 'Set stall length on stalling' })
  await dialog.getByLabel('Work without a commit for').fill('3 hours')
  await dialog.getByRole('button', { name: 'Set stall length' }).click()
  await expect(dialog.getByText('must be a time from 500ms to 60min')).toBeVisible()
  await checkAccessibility(page)
  await looksRight(page, 'stall-length')
  await dialog.getByLabel('Work without a commit for').fill('3s')
  await dialog.getByLabel('Why').fill('nightly loads')
  await dialog.getByRole('button', { name: 'Set stall length' }).click()
  await expect(dialog).toBeHidden()
  await expect(length('3.0 s')).toBeVisible({ timeout: 30_000 })
  await expect(floe('instance', 'stall-length', 'stalling', '--after', '3')).rejects.toThrow(/must be a time/)
  expect(await floe('instance', 'stall-length', 'stalling', '--after', 'default')).toContain('from 1.0 s on')
  expect(await floe('audit', 'list')).toContain('stall.set_length')
})
