import { expect, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floeJson } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance, sql } from '../fixtures/instance'
import { signIn } from '../fixtures/owner'

test.describe.configure({ mode: 'serial' })

let shop: CreatedInstance
test.beforeAll(async () => {
  shop = await createInstance('shop')
})

type Shown = {
  log: { state: string; oldestAt: number | null; limits: { maxBytes: number } }
  points: object[]
}
const shown = () => floeJson<Shown>('flashback', 'show', 'shop')

test('the flashback log is turned on from its page, with what it needs said before, and its window begins', async ({
  page,
}) => {
  expect((await shown()).log).toMatchObject({ state: 'off', oldestAt: null })
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/shop/flashback`)
  await expect(page.getByText('a restart', { exact: true })).toBeVisible()
  await expect(page.getByText('unknown: not measured on this host')).toBeVisible()
  await page.getByLabel('Size limit').selectOption('2')
  await checkAccessibility(page)
  await page.getByRole('button', { name: 'Turn on' }).click()
  const dialog = page.getByRole('dialog', { name: 'Review changes' })
  await expect(dialog.getByRole('cell', { name: 'polar_enable_flashback_log' })).toBeVisible()
  await dialog.getByLabel('Restart the instance now').check()
  await dialog.getByRole('button', { name: /^Apply/ }).click()
  await expect(dialog).toBeHidden({ timeout: 60_000 })
  expect(await sql(shop.connectionString, 'SHOW polar_enable_flashback_log')).toBe('on')
  await sql(shop.connectionString, 'CHECKPOINT')
  await expect(page.getByText('Tables can be flashed back to any moment in the window.')).toBeVisible({
    timeout: 15_000,
  })
  await expect(page.getByText('of at most 2 GB')).toBeVisible()
  await checkAccessibility(page)
})

test('the command line shows the same window', async () => {
  const { log, points } = await shown()
  expect(log).toMatchObject({ state: 'on', limits: { maxBytes: 2 * 1024 ** 3 } })
  expect(points.length).toBeGreaterThan(0)
  const oldest = await sql(
    shop.connectionString,
    'SELECT round(extract(epoch FROM oldest_time) * 1000) FROM polar_stat_flashback_log',
  )
  expect(Math.round(log.oldestAt ?? 0)).toBe(Number(oldest))
})
