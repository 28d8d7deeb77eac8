import { expect, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { restInstances, sql } from '../fixtures/instance'
import { makeOwner, signInAnew } from '../fixtures/owner'

test.describe.configure({ mode: 'serial' })
test.afterAll(restInstances)

test('the set-up link makes the owner once, and leads to the empty list of instances', async ({ page }) => {
  const link = process.env.FLOE_E2E_SETUP_URL as string
  expect(link, '"./floe up" printed a set-up link').toContain('/setup/')
  await page.goto(link)
  await checkAccessibility(page)
  await makeOwner(page)
  await expect(page.getByRole('link', { name: 'Create instance' }).first()).toBeVisible()

  // leave the console first: without its session it would go to the sign-in page by itself
  await page.goto('about:blank')
  await page.context().clearCookies()
  await page.goto(link)
  await expect(page.getByText(/already used|already been used/i).first()).toBeVisible()
})

test('nothing is shown without a session', async ({ page }) => {
  await page.goto(`${process.env.FLOE_E2E_URL}/instances`)
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible()
})

test('a passphrase that is entered before the page works goes nowhere, least of all into the address', async ({
  browser,
}) => {
  const context = await browser.newContext({ javaScriptEnabled: false })
  const page = await context.newPage()
  await page.goto(`${process.env.FLOE_E2E_URL}/sign-in`)
  await page.getByLabel('E-mail').fill('somebody@example.org')
  await page.getByLabel('Passphrase', { exact: true }).fill('a passphrase of somebody')
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeDisabled()
  await page.getByLabel('Passphrase', { exact: true }).press('Enter')
  await expect(page.getByLabel('Passphrase', { exact: true })).toHaveValue('a passphrase of somebody')
  expect(page.url()).toBe(`${process.env.FLOE_E2E_URL}/sign-in`)
  await context.close()
})

test('an instance is created in the browser, runs within seconds, and psql connects by the shown string', async ({
  page,
}) => {
  await signInAnew(page)
  await page.getByRole('link', { name: 'Create instance' }).first().click()
  await page.getByLabel('Name').fill('Not a name')
  await page.getByRole('button', { name: 'Create instance' }).click()
  await expect(page.getByText(/must start with a letter/)).toBeVisible()
  await checkAccessibility(page)

  await page.getByLabel('Name').fill('demo')
  const pressed = Date.now()
  await page.getByRole('button', { name: 'Create instance' }).click()
  const uri = page.getByTestId('connection-uri')
  await expect(uri).toContainText('postgresql://', { timeout: 20_000 })
  const runningMs = Date.now() - pressed
  test.info().annotations.push({ type: 'figure', description: `create to connection string ${runningMs} ms` })

  const connectionString = (await uri.innerText()).trim()
  expect(await sql(connectionString, 'SHOW polar_bulk_extend_size')).toBe('4MB')
  expect(await sql(connectionString, 'SHOW data_checksums')).toBe('on')

  await page.goto(`${process.env.FLOE_E2E_URL}/instances`)
  const row = page.getByRole('row', { name: /demo/ })
  await expect(row.getByText('running')).toBeVisible()
  await expect(row.getByText('primary')).toBeVisible()
  await checkAccessibility(page)
})
