import { expect, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floeJson } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance, restInstances, sql } from '../fixtures/instance'
import { signIn } from '../fixtures/owner'

test.describe.configure({ mode: 'serial' })
test.afterAll(restInstances)

let bloated: CreatedInstance
test.beforeAll(async () => {
  bloated = await createInstance('bloated')
  for (const statement of [
    "CREATE TABLE item (n int PRIMARY KEY, note text DEFAULT repeat('x', 20))",
    'INSERT INTO item SELECT generate_series(1, 200000)',
    'DELETE FROM item WHERE n % 100 <> 0',
    'VACUUM item',
  ])
    await sql(bloated.connectionString, statement)
})

const indexBytes = async () =>
  Number(await sql(bloated.connectionString, "SELECT pg_relation_size('item_pkey')"))

test('the indexes of a database are rebuilt from the menu of its instance, and its operation tells how far', async ({
  page,
}) => {
  const before = await indexBytes()
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/bloated`)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Reindex database' }).click()
  const dialog = page.getByRole('dialog', { name: 'Reindex database on bloated' })
  await dialog.getByRole('button', { name: 'Reindex database' }).click()
  await expect(dialog.getByRole('alert')).toHaveText('must not be empty')
  await checkAccessibility(page)
  await dialog.getByLabel('Database', { exact: true }).fill('postgres')
  await dialog.getByRole('button', { name: 'Reindex database' }).click()
  await expect(dialog).toBeHidden()
  await page.getByRole('link', { name: 'Open the operation' }).last().click()
  await expect(page.getByRole('heading', { name: /Reindex database/ })).toBeVisible()
  await expect(page.getByText('succeeded').first()).toBeVisible({ timeout: 60_000 })
  await checkAccessibility(page)
  expect(await indexBytes()).toBeLessThan(before / 10)
})

test('the command line has the same verb, and says by its name what is not there', async () => {
  const { result } = await floeJson<{ result: { rebuilt: number } }>(
    'instance',
    'reindex',
    'bloated',
    '--database',
    'postgres',
  )
  expect(result.rebuilt).toBeGreaterThan(0)
  await expect(floeJson('instance', 'reindex', 'bloated', '--database', 'nowhere')).rejects.toThrow(
    /database "nowhere" does not exist/,
  )
})
