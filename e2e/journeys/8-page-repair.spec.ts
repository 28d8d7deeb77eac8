import { join } from 'node:path'
import { expect, type Page, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floe, floeJson, runProgram, startProgram } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance, engineProgram, restInstances, sql } from '../fixtures/instance'
import { openInstance } from '../fixtures/instance-page'
import { signIn } from '../fixtures/owner'
import { killAll, pidOf } from '../fixtures/processes'
import { rememberFiles, tearPages } from '../fixtures/torn-pages'

// screens in both themes and widths, each with axe, take a while on a machine that is busy
test.describe.configure({ mode: 'serial', timeout: 360_000 })
test.afterAll(restInstances)

type Protection = { state: string; imagesInForce: boolean; sources: { member: string; healthy: boolean }[] }
type Recovery = {
  start: { beganAt: number; readyAt: number } | null
  torn: number
  repaired: number
  cleared: number
  sources: { member: string; pages: number }[]
}

let torn: CreatedInstance
test.beforeAll(async () => {
  // little room in the pool, so that pages are written soon; no checkpoint but those that are asked for
  const settings = ['shared_buffers=2MB', 'checkpoint_timeout=1h', 'max_wal_size=4GB']
  torn = await createInstance('torn', ...settings.flatMap((s) => ['--set', s]))
})

const protection = () => floeJson<Protection>('instance', 'protection', 'torn')
const shown = () => floeJson<{ state: string; postmasterPid: number }>('instance', 'show', 'torn')
const widerThanWindow = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
/** Everything fits and can be used in light and dark, wide and narrow. */
async function looksRight(page: Page, name: string) {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1280, 390]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 860 })
      await checkAccessibility(page)
      expect(await widerThanWindow(page)).toBeLessThanOrEqual(0)
      await page.screenshot({
        path: test.info().outputPath(`${name}-${colorScheme}-${width}.png`),
        fullPage: true,
      })
    }
  await page.setViewportSize({ width: 1280, height: 860 })
}

test('without a standby full-page writes stay on, the reason is shown, and a link leads to a standby', async ({
  page,
}) => {
  await signIn(page)
  await openInstance(page, 'torn')
  await page.getByRole('button', { name: 'Turn full-page writes off' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByText('full_page_writes stays on')).toBeVisible()
  await expect(dialog.getByRole('button', { name: 'Apply' })).toBeDisabled()
  await checkAccessibility(page)
  await expect(floe('setting', 'set', 'torn', 'full_page_writes=off')).rejects.toThrow(/stays on/)
  await dialog.getByRole('link', { name: 'Add a standby' }).click()
  await expect(page.getByText('No standby yet')).toBeVisible()
})

test('a standby becomes the source by being created, and the toggle turns full-page writes off', async ({
  page,
}) => {
  await floe('standby', 'create', 'torn', 'torn-2')
  await expect
    .poll(async () => (await protection()).sources.map((s) => [s.member, s.healthy]), { timeout: 30_000 })
    .toEqual([['torn-2', true]])
  await signIn(page)
  await openInstance(page, 'torn', 'Replication')
  await expect(page.getByRole('checkbox', { name: /torn-2/ }).first()).toBeChecked()
  await looksRight(page, 'replication')
  await page.getByRole('link', { name: 'Overview', exact: true }).click()
  await page.getByRole('button', { name: 'Turn full-page writes off' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByText(/is fetched from\s+torn-2/)).toBeVisible()
  await dialog.getByRole('button', { name: 'Apply' }).click()
  await expect(page.getByText('Protected by torn-2')).toBeVisible({ timeout: 30_000 })
  await expect.poll(async () => (await protection()).imagesInForce, { timeout: 30_000 }).toBe(false)
})

test('killed under load with torn pages it is back by itself; the pages and who gave them are on the screen', async ({
  page,
}) => {
  await runProgram(engineProgram('pgbench'), ['-i', '-s', '5', '-q', torn.connectionString])
  await sql(torn.connectionString, 'CHECKPOINT')
  const data = join(torn.directory, 'pgdata')
  const before = await rememberFiles(data)
  const load = startProgram(engineProgram('pgbench'), ['-c', '4', '-T', '600', torn.connectionString])
  const done = async () => Number(await sql(torn.connectionString, 'select count(*) from pgbench_history'))
  await expect.poll(done, { timeout: 60_000 }).toBeGreaterThan(2_000)

  const { postmasterPid } = await shown()
  const confirmed = await done()
  const agent = pidOf('agent')
  // the power is off: nobody starts the instance while its files are what the disk made of them
  process.kill(agent, 'SIGSTOP')
  let pages: number
  try {
    await killAll(postmasterPid)
    await load.ended
    pages = await tearPages(data, before)
  } finally {
    process.kill(agent, 'SIGCONT')
  }
  expect(pages).toBeGreaterThan(20)

  await signIn(page)
  await openInstance(page, 'torn')
  await expect
    .poll(
      async () => {
        const { state, postmasterPid: pid } = await shown()
        return state === 'running' && pid !== postmasterPid
      },
      { timeout: 90_000 },
    )
    .toBe(true)
  await expect
    .poll(async () => (await floeJson<Recovery[]>('instance', 'recoveries', 'torn')).length, {
      timeout: 30_000,
    })
    .toBeGreaterThan(0)
  const [recovery] = await floeJson<Recovery[]>('instance', 'recoveries', 'torn')
  expect(recovery?.torn).toBeGreaterThan(20)
  // how long the whole start took, as the server log says
  await expect
    .poll(
      async () => {
        const { start } = (await floeJson<Recovery[]>('instance', 'recoveries', 'torn'))[0] ?? {}
        return start ? start.readyAt - start.beganAt : 0
      },
      { timeout: 30_000 },
    )
    .toBeGreaterThan(0)
  // a torn page of a map is cleared: it needs no source
  expect((recovery?.repaired ?? 0) + (recovery?.cleared ?? 0)).toBe(recovery?.torn)
  expect(recovery?.sources.map((s) => s.member)).toEqual(['torn-2'])

  const row = page.getByRole('table', { name: 'Recoveries' }).getByRole('row').nth(1)
  const number = new Intl.NumberFormat('en').format(recovery?.repaired as number)
  await expect(row.getByRole('cell', { name: number, exact: true }).first()).toBeVisible({ timeout: 30_000 })
  await expect(row).toContainText('torn-2')
  // every row that was confirmed is there, and the books agree
  expect(await done()).toBeGreaterThanOrEqual(confirmed)
  const [accounts, tellers, branches, history] = (
    await sql(
      torn.connectionString,
      `select sum(abalance) from pgbench_accounts union all select sum(tbalance) from pgbench_tellers union all
       select sum(bbalance) from pgbench_branches union all select sum(delta) from pgbench_history`,
    )
  ).split('\n')
  expect([tellers, branches, history]).toEqual([accounts, accounts, accounts])
  await expect
    .poll(async () => (await protection()).state, { timeout: 60_000 })
    .toMatch(/^(protected|full_page_writes)$/)
  await looksRight(page, 'recovered')
})

test('when the last source is lost the card says exposed, the guard has images written, an incident tells; and back', async ({
  page,
}) => {
  const title = 'instance "torn" has no healthy page repair source'
  const open = async () =>
    (await floeJson<{ title: string; closedAt: number | null }[]>('incident', 'list')).filter(
      (i) => i.title === title && i.closedAt === null,
    ).length
  await signIn(page)
  await openInstance(page, 'torn')
  await expect(page.getByText('Protected by torn-2')).toBeVisible({ timeout: 60_000 })
  await floe('instance', 'stop', 'torn-2')
  const card = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Torn pages' }) })
  await expect(card.getByText('Exposed', { exact: true })).toBeVisible({ timeout: 30_000 })
  const badge = page.getByRole('link', { name: /^Exposed/ })
  await expect(badge).toBeVisible()
  await page.screenshot({ path: test.info().outputPath('exposed.png'), fullPage: true })
  await expect(card.getByText('Protected by full-page images')).toBeVisible({ timeout: 60_000 })
  await expect(card.getByText(/the guard has enabled them/)).toBeVisible()
  await expect(card.getByText('not healthy')).toBeVisible()
  await expect(badge).toBeHidden()
  await expect.poll(open, { timeout: 60_000 }).toBe(1)
  await looksRight(page, 'unprotected')
  await floe('instance', 'start', 'torn-2')
  await expect(card.getByText('Protected by torn-2')).toBeVisible({ timeout: 60_000 })
  await expect.poll(open, { timeout: 60_000 }).toBe(0)
  // a person may do without: red on every page of the instance, for as long as it lasts
  await page.getByRole('link', { name: 'Settings', exact: true }).click()
  await floe('setting', 'set', 'torn', 'polar_page_repair_guard=off')
  await expect(badge).toHaveText('Exposed: the guard is off', { timeout: 30_000 })
  await expect(page.getByRole('switch', { name: 'Page repair guard' })).not.toBeChecked({ timeout: 20_000 })
  await looksRight(page, 'overridden')
  await card.getByRole('button', { name: 'Turn the guard on' }).click()
  await expect(
    page.getByRole('dialog').getByText('Full-page writes stay off while a source is healthy'),
  ).toBeVisible()
  await page.screenshot({ path: test.info().outputPath('guard-on.png') })
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await expect(badge).toBeHidden({ timeout: 30_000 })
})
