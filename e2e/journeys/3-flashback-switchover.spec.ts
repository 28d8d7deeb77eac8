import { expect, test } from '@playwright/test'
import { floe, floeJson } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance, restInstances, sql } from '../fixtures/instance'
import { looksRight } from '../fixtures/looks-right'
import { signIn } from '../fixtures/owner'

test.describe.configure({ mode: 'serial' })
test.afterAll(restInstances)

type Shown = { log: { state: string; oldestAt: number | null } | null }
const windowOf = async (name: string) => (await floeJson<Shown>('flashback', 'show', name)).log

let first: CreatedInstance
let toPrimary: string
test.beforeAll(async () => {
  first = await createInstance(
    'depot',
    ...['--set', 'polar_enable_flashback_log=on', '--set', 'polar_enable_fast_recovery_area=on'],
  )
  await floe('standby', 'create', 'depot', 'depot-2')
  const { connections } = await floeJson<{ connections: { primary: { uri: string } } }>(
    ...['cluster', 'show', 'depot'],
  )
  toPrimary = connections.primary.uri.replace('postgres@', `postgres:${first.password}@`)
})

const content = () => sql(toPrimary, 'SELECT count(*), sum(hashtextextended(p::text, 0)) FROM parcels p')

test('rows that the former primary lost are back on the new one, from its own window, whose it is said', async ({
  page,
}) => {
  await sql(
    toPrimary,
    'CREATE TABLE parcels AS SELECT i AS id, md5(i::text) AS label FROM generate_series(1, 6000) i',
  )
  await sql(toPrimary, 'ALTER TABLE parcels ADD PRIMARY KEY (id)')
  // a standby has points of its own, at its restartpoints
  await expect
    .poll(
      async () => {
        await sql(toPrimary, 'CHECKPOINT')
        return (await windowOf('depot-2'))?.oldestAt ?? null
      },
      { timeout: 120_000, intervals: [2_000] },
    )
    .not.toBeNull()
  const before = await content()
  const moment = await sql(toPrimary, 'SELECT extract(epoch FROM clock_timestamp())')
  expect((await windowOf('depot-2'))?.oldestAt).toBeLessThan(Number(moment) * 1_000)
  await sql(toPrimary, 'DELETE FROM parcels WHERE id % 2 = 0')
  await floe('cluster', 'switchover', 'depot', '--to', 'depot-2')

  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/depot-2/flashback`)
  await expect(
    page.getByText(/^Of depot-2, the primary of its cluster; each member has its own\./),
  ).toBeVisible()
  const others = page.getByRole('list', { name: 'Windows of the other members' })
  await expect(others.getByRole('link', { name: 'depot', exact: true })).toBeVisible()
  const card = page.getByRole('region', { name: 'Flash back a table' })
  await card.getByRole('button', { name: /^public\.parcels 3,000 rows were deleted/ }).click()
  await expect(card.getByRole('button', { name: 'Just before 3,000 rows were deleted' })).toBeVisible()
  await card.getByRole('button', { name: 'Flash back', exact: true }).click()
  await expect(
    card.getByText(/public\.parcels as of .* is in public\.polar_flashback_\d+ \(6,000 rows/),
  ).toBeVisible()
  await card.getByRole('button', { name: 'Merge…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Count the changes' }).click()
  await expect(dialog.getByText('Counted in a transaction that was rolled back')).toBeVisible()
  await dialog.getByRole('button', { name: 'Merge', exact: true }).click()
  await expect(dialog.getByText('3,000 rows inserted in public.parcels')).toBeVisible()
  await dialog.getByRole('button', { name: 'Done' }).click()
  expect(await content()).toBe(before)
  await looksRight(page, 'after-switchover')
})
