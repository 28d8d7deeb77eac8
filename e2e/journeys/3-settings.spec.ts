import { expect, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { runProgram } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance, engineProgram, restInstances, sql } from '../fixtures/instance'
import { openInstance, shownNumber } from '../fixtures/instance-page'
import { startLoad } from '../fixtures/load'
import { signIn } from '../fixtures/owner'

test.describe.configure({ mode: 'serial' })
test.afterAll(restInstances)

let tuned: CreatedInstance
test.beforeAll(async () => {
  tuned = await createInstance('tuned')
})

test('full_page_writes is switched with a warning, confirmed, and the share of full-page images falls', async ({
  page,
}) => {
  await runProgram(engineProgram('pgbench'), ['-i', '-s', '10', '-q', tuned.connectionString])
  const load = startLoad(tuned.connectionString)
  try {
    await signIn(page)
    await openInstance(page, 'tuned')
    // images are written for the first change after a checkpoint
    await sql(tuned.connectionString, 'CHECKPOINT')
    await expect.poll(() => shownNumber(page, 'wal_fpi_bytes'), { timeout: 20_000 }).toBeGreaterThan(100_000)

    await page.getByRole('link', { name: 'Settings', exact: true }).click()
    const control = page.getByRole('switch', { name: 'Full-page writes' })
    await expect(control).toBeChecked()
    await control.click()
    await expect(page.getByText('Needs a page repair source')).toBeVisible()
    // without a source the guard would have images written all the same
    await page.getByRole('switch', { name: 'Page repair guard' }).click()
    await expect(page.getByText('Torn pages may not be repaired')).toBeVisible()
    await page.getByRole('button', { name: 'Review changes' }).click()
    await expect(page.getByRole('dialog').getByRole('cell', { name: 'full_page_writes' })).toBeVisible()
    const pressed = Date.now()
    await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
    await expect(page.getByText(/confirmed/i).first()).toBeVisible({ timeout: 10_000 })
    const confirmedMs = Date.now() - pressed
    test
      .info()
      .annotations.push({ type: 'figure', description: `full_page_writes confirmed after ${confirmedMs} ms` })
    expect(await sql(tuned.connectionString, 'SHOW full_page_writes')).toBe('off')
    await expect(page.locator('#torn-pages').getByText('Exposed: the guard is off')).toBeVisible()

    await page.getByRole('link', { name: 'Overview', exact: true }).click()
    await sql(tuned.connectionString, 'CHECKPOINT')
    await expect
      .poll(async () => (await shownNumber(page, 'wal_fpi_bytes')) / (await shownNumber(page, 'wal_bytes')), {
        timeout: 20_000,
      })
      .toBeLessThan(0.05)
  } finally {
    await load.stop()
  }
})

test('a bulk size is changed, confirmed by SHOW, and stands in the history with who and old → new', async ({
  page,
}) => {
  await signIn(page)
  await openInstance(page, 'tuned', 'Settings')
  await checkAccessibility(page)
  await page.getByLabel('Bulk extend size').first().fill('1MB')
  await page.getByRole('button', { name: 'Review changes' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await expect(page.getByText(/confirmed/i).first()).toBeVisible({ timeout: 10_000 })
  expect(await sql(tuned.connectionString, 'SHOW polar_bulk_extend_size')).toBe('1MB')
  // what it did is told of samples; the seconds around the change count for neither side, so the table grows until one does
  const did = page.getByRole('region', { name: 'Last change of polar_bulk_extend_size' })
  await expect(did).toContainText(/4MB.*1MB/)
  await sql(tuned.connectionString, 'CREATE TABLE extended (a text)')
  await expect(async () => {
    await sql(
      tuned.connectionString,
      "INSERT INTO extended SELECT repeat('x', 900) FROM generate_series(1, 20000)",
    )
    await expect(did).toContainText(/After: ?[\d.]+ [kM]B per extension/, { timeout: 2_000 })
  }).toPass({ timeout: 60_000 })
  await checkAccessibility(page)
  await page.getByRole('link', { name: 'History', exact: true }).click()
  const row = page
    .getByRole('table', { name: 'History of settings' })
    .getByRole('row', { name: /polar_bulk_extend_size/ })
    .first()
  await expect(row).toContainText('4MB')
  await expect(row).toContainText('1MB')
  await expect(row).toContainText('Olga Owner')
})

test('a value that would keep the engine from starting is refused before anything changes', async ({
  page,
}) => {
  await signIn(page)
  await openInstance(page, 'tuned', 'Settings')
  await page.getByRole('link', { name: 'All settings', exact: true }).click()
  await page.getByRole('searchbox').fill('shared_buffers')
  await page.getByRole('button', { name: 'Change shared_buffers', exact: true }).click()
  await page.getByLabel('New value').fill('9999TB')
  await page.getByRole('button', { name: 'Review changes' }).click()
  await expect(page.getByText(/invalid value|outside the valid range|exceeds/i).first()).toBeVisible()
  expect(await sql(tuned.connectionString, 'SHOW shared_buffers')).not.toContain('TB')
  expect(
    await sql(tuned.connectionString, 'SELECT count(*) FROM pg_file_settings WHERE error IS NOT NULL'),
  ).toBe('0')
})

test('what ALTER SYSTEM changed past Floe is shown, and reverted with one press', async ({ page }) => {
  await sql(tuned.connectionString, "ALTER SYSTEM SET work_mem = '77MB'")
  await sql(tuned.connectionString, 'SELECT pg_reload_conf()')
  await signIn(page)
  await openInstance(page, 'tuned', 'Settings')
  await expect(page.getByText('Configuration drift: 1 setting')).toBeVisible({ timeout: 15_000 })
  await expect(page.getByRole('cell', { name: /postgresql\.auto\.conf/ })).toBeVisible()
  await checkAccessibility(page)
  await page.getByRole('button', { name: 'Revert' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revert' }).click()
  await expect(page.getByText('Configuration drift: 1 setting')).toBeHidden({ timeout: 15_000 })
  expect(await sql(tuned.connectionString, 'SHOW work_mem')).toBe('4MB')
})

test('all settings are rolled back to an earlier revision, and the history says why', async ({ page }) => {
  await signIn(page)
  await openInstance(page, 'tuned', 'Settings')
  await page.getByRole('link', { name: 'History', exact: true }).click()
  await checkAccessibility(page)
  // the oldest revision: as the instance was created
  await page
    .getByRole('table', { name: 'Revisions of the settings' })
    .getByRole('button', { name: /Roll back/ })
    .last()
    .click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByRole('cell', { name: 'polar_bulk_extend_size' })).toBeVisible()
  await dialog.getByLabel('Why').fill('the journey is over')
  await dialog.getByRole('button', { name: 'Roll back' }).click()
  // "confirmed" stands on this page in other places, too
  await expect.poll(() => sql(tuned.connectionString, 'SHOW polar_bulk_extend_size')).toBe('4MB')
  await expect.poll(() => sql(tuned.connectionString, 'SHOW full_page_writes')).toBe('on')
  await expect(page.getByRole('cell', { name: 'the journey is over' }).first()).toBeVisible()
})
