import { readFileSync } from 'node:fs'
import { expect, type Locator, type Page, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floeJson } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance, restInstances, sql } from '../fixtures/instance'
import { looksRight } from '../fixtures/looks-right'
import { signIn } from '../fixtures/owner'

test.describe.configure({ mode: 'serial' })
test.afterAll(restInstances)

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
  // an engine is started to check them
  await expect(dialog.getByRole('cell', { name: 'polar_enable_flashback_log' })).toBeVisible({
    timeout: 60_000,
  })
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

/** A table with a primary key, and values that are kept in TOAST. */
const ordersSql = `CREATE TABLE orders (id int PRIMARY KEY, customer text, note text, attachment text);
  INSERT INTO orders
  SELECT i, 'Customer ' || i, CASE WHEN i % 3 = 0 THEN 'note ' || i END,
         CASE WHEN i % 50 = 0 THEN (SELECT string_agg(md5(i::text || j), '') FROM generate_series(1, 400) j) END
  FROM generate_series(1, 20000) i`

/** What tells the rows of a table from any others. */
const content = (table: string) =>
  sql(shop.connectionString, `SELECT count(*), sum(hashtextextended(t::text, 0)) FROM ${table} t`)

/** The page of the instance, and presses on it, counted as a person makes them. */
async function flashbackPage(page: Page) {
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/shop/flashback`)
  let presses = 0
  return {
    card: page.getByRole('region', { name: 'Flash back a table' }),
    results: page.getByRole('region', { name: 'Results of flashbacks' }),
    lost: page.getByRole('region', { name: 'Dropped, truncated and rewritten tables' }),
    dialog: page.getByRole('dialog'),
    presses: () => presses,
    press: async (target: Locator) => {
      await target.click()
      presses += 1
    },
  }
}

test('deleted rows are back in their table after at most six presses', async ({ page }) => {
  await sql(shop.connectionString, ordersSql)
  await sql(shop.connectionString, 'CHECKPOINT')
  const before = await content('orders')
  await sql(shop.connectionString, 'DELETE FROM orders WHERE id % 4 = 0')
  const { card, dialog, press, presses } = await flashbackPage(page)
  // one press for the table and the moment
  await press(card.getByRole('button', { name: /^public\.orders 5,000 rows were deleted/ }))
  // the button moves down until the moments are listed
  await expect(card.getByRole('button', { name: 'Just before 5,000 rows were deleted' })).toBeVisible()
  await press(card.getByRole('button', { name: 'Preview', exact: true }))
  await expect(card.getByText('Since then: 5,000 rows removed.')).toBeVisible()
  await expect(card.getByText('Rows are matched by id.')).toBeVisible()
  await press(card.getByRole('button', { name: 'Flash back', exact: true }))
  await expect(
    card.getByText(/public\.orders as of .* is in public\.polar_flashback_\d+ \(20,000 rows/),
  ).toBeVisible()
  await press(card.getByRole('button', { name: 'Merge…' }))
  // nobody is kept from writing by a look at the dialog
  await expect(dialog.getByText('other sessions can read public.orders but cannot write to it')).toBeVisible()
  await expect(dialog.getByRole('button', { name: 'Merge', exact: true })).toBeDisabled()
  await press(dialog.getByRole('button', { name: 'Count the changes' }))
  await expect(dialog.getByText('Counted in a transaction that was rolled back')).toBeVisible()
  await press(dialog.getByRole('button', { name: 'Merge', exact: true }))
  await expect(dialog.getByText('5,000 rows inserted in public.orders')).toBeVisible()
  expect(await content('orders')).toBe(before)
  expect(presses()).toBeLessThanOrEqual(6)
  await dialog.getByRole('button', { name: 'Done' }).click()
  await looksRight(page, 'merged')
})

test('rows that were overwritten are seen side by side, and only those that are ticked are restored', async ({
  page,
}) => {
  await sql(shop.connectionString, "UPDATE orders SET note = 'wrong' WHERE id <= 2000")
  const { card, dialog, press, presses } = await flashbackPage(page)
  // one press for the table and the moment
  await press(card.getByRole('button', { name: /^public\.orders 2,000 rows were updated/ }))
  // the button moves down until the moments are listed
  await expect(card.getByRole('button', { name: 'Just before 2,000 rows were updated' })).toBeVisible()
  await press(card.getByRole('button', { name: 'Flash back', exact: true }))
  await press(card.getByRole('button', { name: 'Compare' }))
  await expect(card.getByText('Since then: 2,000 rows changed.')).toBeVisible()
  await press(card.getByRole('button', { name: 'Show rows' }))
  const rows = card.getByRole('table', { name: 'Changed rows' }).getByRole('row')
  const keys = [
    await rows.nth(1).getByRole('cell').nth(1).innerText(),
    await rows.nth(2).getByRole('cell').nth(1).innerText(),
  ]
  await press(rows.nth(1).getByRole('checkbox'))
  await press(rows.nth(2).getByRole('checkbox'))
  await looksRight(page, 'compared')
  await page.setViewportSize({ width: 1280, height: 860 })
  await press(card.getByRole('button', { name: 'Merge selected rows…' }))
  await press(dialog.getByRole('button', { name: 'Count the changes' }))
  await expect(dialog.getByText('Counted in a transaction that was rolled back')).toBeVisible()
  await looksRight(page, 'counted')
  await press(dialog.getByRole('button', { name: 'Merge', exact: true }))
  await expect(dialog.getByText('2 rows restored in public.orders')).toBeVisible()
  expect(await sql(shop.connectionString, "SELECT count(*) FROM orders WHERE note = 'wrong'")).toBe('1998')
  expect(
    await sql(
      shop.connectionString,
      `SELECT count(*) FROM orders WHERE id IN (${keys}) AND note IS DISTINCT FROM 'wrong'`,
    ),
  ).toBe('2')
  expect(presses()).toBeLessThanOrEqual(9)
})

test('a truncated table has its rows back after four presses', async ({ page }) => {
  const before = await content('orders')
  await sql(shop.connectionString, 'TRUNCATE orders')
  const { lost, dialog, press, presses } = await flashbackPage(page)
  const row = lost.getByRole('listitem').filter({ hasText: 'truncated' })
  await press(row.getByRole('button', { name: 'Flash back' }))
  await expect(row.getByText(/as it was just before is in .* \(20,000 rows/)).toBeVisible()
  await press(row.getByRole('button', { name: 'Merge…' }))
  await press(dialog.getByRole('button', { name: 'Count the changes' }))
  await expect(dialog.getByText('Counted in a transaction that was rolled back')).toBeVisible()
  await press(dialog.getByRole('button', { name: 'Merge', exact: true }))
  await expect(dialog.getByText('20,000 rows inserted in public.orders')).toBeVisible()
  expect(await content('orders')).toBe(before)
  expect(presses()).toBe(4)
})

test('a dropped table is given back under its name, into another schema where its own is gone', async ({
  page,
}) => {
  await sql(
    shop.connectionString,
    'CREATE TABLE prices AS SELECT i AS id, i * 1.5 AS price FROM generate_series(1, 3000) i',
  )
  await sql(shop.connectionString, 'CHECKPOINT')
  const before = await content('prices')
  await sql(shop.connectionString, 'DROP TABLE prices')
  await sql(
    shop.connectionString,
    `CREATE SCHEMA gone; CREATE TABLE gone.rates AS SELECT i AS id FROM generate_series(1, 700) i`,
  )
  await sql(shop.connectionString, 'CHECKPOINT')
  await sql(shop.connectionString, 'DROP SCHEMA gone CASCADE')
  const { lost, results, dialog, press } = await flashbackPage(page)
  const row = lost.getByRole('listitem').filter({ hasText: 'public.prices' })
  await press(row.getByRole('button', { name: 'Definition' }))
  await expect(row.getByText(/CREATE TABLE .*prices/)).toBeVisible()
  await press(row.getByRole('button', { name: 'Flash back…' }))
  await looksRight(page, 'give-back')
  await press(dialog.getByRole('button', { name: 'Flash back' }))
  await expect(row.getByText('public.prices is back (3,000 rows')).toBeVisible()
  await expect(row.getByText('constraints and defaults of just before the drop')).toBeVisible()
  expect(await content('prices')).toBe(before)
  // it is that table again, which nobody drops as a result
  await expect(results.getByRole('strong').filter({ hasText: 'public.prices' })).toHaveCount(0)

  const orphan = lost.getByRole('listitem').filter({ hasText: 'gone.rates' })
  await press(orphan.getByRole('button', { name: 'Flash back…' }))
  await press(dialog.getByRole('button', { name: 'Flash back' }))
  await expect(orphan.getByText('schema "gone" does not exist')).toBeVisible()
  await press(orphan.getByRole('button', { name: 'Try again' }))
  await dialog.getByLabel('Schema').fill('public')
  await press(dialog.getByRole('button', { name: 'Flash back' }))
  await expect(orphan.getByText('public.rates is back (700 rows')).toBeVisible()
  expect(await sql(shop.connectionString, 'SELECT count(*) FROM public.rates')).toBe('700')
  await looksRight(page, 'lost')
})

test('what was done to partitions is told of their table', async ({ page }) => {
  await sql(
    shop.connectionString,
    `CREATE TABLE visits (id int, day int) PARTITION BY LIST (day);
     CREATE TABLE visits_1 PARTITION OF visits FOR VALUES IN (1);
     CREATE TABLE visits_2 PARTITION OF visits FOR VALUES IN (2);
     INSERT INTO visits SELECT i, 1 + i % 2 FROM generate_series(1, 1600) i`,
  )
  await sql(shop.connectionString, 'DELETE FROM visits WHERE id <= 1400')
  const { card, press } = await flashbackPage(page)
  await press(card.getByRole('button', { name: /^public\.visits 1,400 rows were deleted/ }))
  await expect(card.getByRole('button', { name: 'Just before 1,400 rows were deleted' })).toBeVisible()
  await expect(card.getByText('in a partition, changes of fewer than 50 rows are not counted')).toBeVisible()
  await press(card.getByRole('button', { name: 'Flash back', exact: true }))
  await expect(card.getByText(/public\.visits as of .* \(1,600 rows/)).toBeVisible()
  await card.getByRole('button', { name: 'Change table' }).click()
  const listed = card
    .getByRole('table', { name: 'Tables' })
    .getByRole('row')
    .filter({ hasText: 'partitioned' })
  await expect(listed.getByText(/ ago$/)).toBeVisible()
})

test('a result is downloaded, swapped with its table, and dropped', async ({ page }) => {
  const { results, dialog } = await flashbackPage(page)
  const result = results.getByRole('listitem').filter({ hasText: 'public.orders as of' }).first()
  const name = (await result.getByRole('strong').first().innerText()).trim()
  const [then, now] = [await content(name), await content('orders')]
  const downloading = page.waitForEvent('download')
  await result.getByRole('button', { name: 'Download CSV' }).click()
  const csv = readFileSync(await (await downloading).path(), 'utf8')
  expect(csv.split('\n')[0]?.trim()).toBe('id,customer,note,attachment')
  const menu = async (item: string) => {
    await result.getByRole('button', { name: `More for ${name}` }).click()
    await page.getByRole('menuitem', { name: item }).click()
  }
  await menu('Swap…')
  await expect(dialog.getByRole('button', { name: 'Swap' })).toBeDisabled()
  await dialog.getByRole('textbox').fill('shop')
  await dialog.getByRole('button', { name: 'Swap' }).click()
  await expect(dialog.getByText(/public\.orders has [\d,]+ rows now/)).toBeVisible()
  expect([await content(name), await content('orders')]).toEqual([now, then])
  await dialog.getByRole('button', { name: 'Done' }).click()
  await menu('Drop result…')
  await dialog.getByRole('button', { name: 'Drop result' }).click()
  await expect(dialog).toBeHidden()
  expect(await sql(shop.connectionString, `SELECT to_regclass('${name}') IS NULL`)).toBe('t')
})

test('the moment is moved by keys and typed, and one outside the window comes with the nearest that works', async ({
  page,
}) => {
  await signIn(page)
  await page.goto(
    `${process.env.FLOE_E2E_URL}/instances/shop/flashback?database=postgres&table=public.orders`,
  )
  const time = page.getByLabel('Time', { exact: true })
  await time.fill('10 s ago')
  await time.press('Enter')
  const chosen = () => Number(new URL(page.url()).searchParams.get('at'))
  await expect.poll(chosen).toBeGreaterThan(0)
  const at = chosen()
  const slider = page.getByRole('slider', { name: 'Moment' })
  await slider.press('ArrowLeft')
  await slider.press('Shift+ArrowLeft')
  await expect.poll(chosen).toBe(at - 11_000)
  await slider.press('+')
  await expect(page.getByRole('button', { name: 'Whole window' })).toBeVisible()
  await time.fill('2020-01-01 00:00:00')
  await time.press('Enter')
  await expect(page.getByText('The window does not reach back to 2020-01-01 00:00:00')).toBeVisible()
  await expect(page.getByRole('button', { name: 'Preview', exact: true })).toBeHidden()
  await page.getByRole('button', { name: /^Use / }).click()
  await expect(page.getByRole('button', { name: 'Preview', exact: true })).toBeVisible()
  await looksRight(page, 'moment')
})
