import { join } from 'node:path'
import { expect, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { checkout, floe, floeJson, runProgram } from '../fixtures/floe-command'
import { looksRight } from '../fixtures/looks-right'
import { owner, signInAnew } from '../fixtures/owner'

const fresh = 'four quite other random words'

test('a person changes their name and passphrase, and ends sessions in other browsers', async ({
  page,
  browser,
}) => {
  const elsewhere = await (await browser.newContext()).newPage()
  // a page whose session ended may be leaving for the sign-in by itself at this very moment, which aborts the visit
  const leave = () => elsewhere.goto(`${process.env.FLOE_E2E_URL}/instances`).catch(() => null)
  await signInAnew(elsewhere)
  await signInAnew(page)
  const place = page.getByRole('menuitem', { name: 'Account' })
  await expect(async () => {
    // before the page's script runs, a click opens nothing
    if (!(await place.isVisible())) await page.getByRole('button', { name: `Account: ${owner.name}` }).click()
    await expect(place).toBeVisible({ timeout: 1_000 })
  }).toPass({ timeout: 30_000 })
  await place.click()
  await expect(page.getByRole('heading', { name: 'Account', level: 1 })).toBeVisible()
  await checkAccessibility(page)

  await page.getByLabel('Name', { exact: true }).fill('controller')
  await page.getByRole('button', { name: 'Change name' }).click()
  await expect(page.getByText('is a name that Floe uses itself')).toBeVisible()
  await page.getByLabel('Name', { exact: true }).fill('Olga Renamed')
  await page.getByRole('button', { name: 'Change name' }).click()
  await expect(page.getByRole('button', { name: 'Account: Olga Renamed' })).toBeVisible()
  await page.getByLabel('Name', { exact: true }).fill(owner.name)
  await page.getByRole('button', { name: 'Change name' }).click()
  await expect(page.getByRole('button', { name: `Account: ${owner.name}` })).toBeVisible()

  const sessions = page.getByRole('list', { name: 'Sessions' }).getByRole('listitem')
  await expect(sessions.filter({ hasText: 'this session' })).toHaveCount(1)
  const change = async (current: string, next: string) => {
    await page.getByLabel('Current passphrase').fill(current)
    await page.getByLabel('New passphrase', { exact: true }).fill(next)
    await page.getByLabel('Repeat new passphrase').fill(next)
    await page.getByRole('button', { name: 'Change passphrase' }).click()
  }
  await change('not the passphrase', fresh)
  await expect(page.getByText('the current passphrase is wrong')).toBeVisible()
  await change(owner.passphrase, fresh)
  await expect(page.getByText('Passphrase changed')).toBeVisible()
  await expect(page.getByText(/other sessions? (was|were) ended/)).toBeVisible()
  await expect(sessions).toHaveCount(1)
  await expect(page.getByText('No other sessions.')).toBeVisible()
  await checkAccessibility(page)

  // the other browser is outside, and so is whoever knows the old passphrase
  await leave()
  await expect(elsewhere.getByRole('heading', { name: 'Sign in', level: 1 })).toBeVisible()
  await change(fresh, owner.passphrase)
  await expect(page.getByText('You had no other sessions.')).toBeVisible()

  // one session is ended by its button
  await signInAnew(elsewhere)
  await page.reload()
  await page.getByRole('button', { name: /^End session: / }).click()
  await expect(page.getByText('No other sessions.')).toBeVisible()
  await leave()
  await expect(elsewhere.getByRole('heading', { name: 'Sign in', level: 1 })).toBeVisible()
})

test('a token is created for a program, shown once, used and revoked', async ({ page, request }) => {
  await signInAnew(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/account`)
  await expect(page.getByText('No API tokens.')).toBeVisible()
  await page.getByLabel('Token name').fill('controller')
  await page.getByRole('button', { name: 'Create token' }).click()
  await expect(page.getByText('is a name that Floe uses itself')).toBeVisible()
  await page.getByLabel('Token name').fill('nightly report')
  await page.getByRole('button', { name: 'Create token' }).click()
  await expect(page.getByText('The new token, shown this once')).toBeVisible()
  const secret = await page.locator('code', { hasText: /^floe-/ }).innerText()
  await looksRight(page, 'token-created')

  const asked = () =>
    request.get(`${process.env.FLOE_E2E_URL}/api/trpc/instance.list`, {
      headers: { authorization: `Bearer ${secret}` },
    })
  expect((await asked()).status()).toBe(200)
  await page.reload()
  await expect(page.getByText('nightly report')).toBeVisible()
  await expect(page.getByText('shown this once')).toHaveCount(0)
  const [listed] = await floeJson<{ name: string; role: string }[]>('token', 'list')
  expect(listed).toMatchObject({ name: 'nightly report', role: 'viewer', lastUsedAt: expect.any(Number) })
  await page.getByRole('button', { name: 'Revoke nightly report' }).click()
  await expect(page.getByText('No API tokens.')).toBeVisible()
  expect((await asked()).status()).toBe(401)

  // the command line has the same verbs
  const { secret: operator } = await floeJson<{ secret: string }>(
    'token',
    'create',
    'ci',
    '--role',
    'operator',
  )
  const elsewhere = {
    FLOE_CONSOLE_URL: new URL(process.env.FLOE_E2E_URL as string).origin,
    FLOE_CONSOLE_TOKEN: operator,
  }
  const asToken = (...args: string[]) =>
    runProgram(join(checkout, 'floe'), args, { ...elsewhere, FLOE_HOME: '/nonexistent' })
  expect(JSON.parse(await asToken('host', 'list', '--json'))).toContainEqual(
    expect.objectContaining({ own: true }),
  )
  expect(await asToken('token', 'list').catch(String)).not.toContain('nightly report')
  expect(await floe('token', 'revoke', 'ci')).toContain('was revoked')
})
