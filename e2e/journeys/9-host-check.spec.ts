import { expect, type Page, test } from '@playwright/test'
import { floe, floeJson } from '../fixtures/floe-command'
import { createInstance, restInstances } from '../fixtures/instance'
import { looksRight } from '../fixtures/looks-right'
import { signIn } from '../fixtures/owner'

test.afterAll(restInstances)

type Line = { name: string; actual: string | null; severity: string; command: string | null }
type Checked = { last: { at: number; check: { lines: Line[] } } | null; failed: unknown }

test('a host’s machine is checked by a button and by a verb: what is, what is wanted, why, and what mends it', async ({
  page,
}) => {
  // at the end of a run the page shows every instance that the journeys left
  test.setTimeout(300_000)
  await signIn(page)
  const [own] = await floeJson<{ name: string }[]>('host', 'list')
  await page.goto(`${process.env.FLOE_E2E_URL}/hosts/${own?.name}`)
  // nobody asked: a host is checked once it is there, and once a day
  await expect(page.getByText(/checked .* ago by Controller/)).toBeVisible({ timeout: 60_000 })
  await page.getByRole('button', { name: 'Check again' }).click()
  await expect(page.getByText(/checked .* ago by Olga Owner/)).toBeVisible({ timeout: 60_000 })

  const told = await floeJson<Checked>('host', 'check', '--last')
  expect(told.failed).toBeNull()
  const lines = told.last?.check.lines ?? []
  expect(lines.map((line) => line.name)).toEqual(expect.arrayContaining(['vm.swappiness', 'nofile']))
  await page.getByRole('button', { name: /^Show \d+ as wanted$/ }).click()
  const table = page.getByRole('table', { name: `Check of ${own?.name}` })
  await expect(table.locator('tbody tr')).toHaveCount(lines.length)
  for (const { name, severity, command } of lines) {
    const row = table.locator('tbody tr').filter({ has: page.getByText(name, { exact: true }) })
    await expect(row).toHaveAttribute('data-severity', severity)
    await expect(row.getByRole('button', { name: `Copy the command for ${name}` })).toHaveCount(
      command === null ? 0 : 1,
    )
  }
  await looksRight(page, 'host-check')

  // the same by the verb: a new one, later than the first
  expect(await floe('host', 'check', '--all')).toContain('vm.swappiness: ')
  const again = await floeJson<Checked>('host', 'check', '--last')
  expect(again.last?.at).toBeGreaterThan(told.last?.at ?? Number.MAX_VALUE)
  await expect(page.getByText(/checked .* ago by command line/i)).toBeVisible({ timeout: 10_000 })
})

test('a profile is a draft of ordinary settings with reasons, reviewed and applied like any change', async ({
  page,
}) => {
  await createInstance('profiled')
  const proposed = await floeJson<{ lines: { name: string; value: string; reason: string }[] }>(
    ...['instance', 'profile', 'profiled', 'tiny'],
  )
  expect(proposed.lines.map((line) => line.name)).toContain('max_wal_size')
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/profiled/settings/all`)
  await page.getByRole('button', { name: 'From a profile' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Profile', { exact: true }).selectOption('tiny')
  const line = dialog.getByRole('row', { name: /max_wal_size/ })
  await expect(line).toContainText('256MB')
  await expect(line).toContainText('WAL takes little of the disk')
  await looksRight(page, 'profile')
  await dialog.getByRole('button', { name: /^Draft \d+ changes$/ }).click()
  await page.getByRole('button', { name: 'Review changes' }).click()
  await expect(dialog.getByRole('cell', { name: 'max_wal_size' })).toBeVisible({ timeout: 60_000 })
  await dialog.getByRole('button', { name: 'Apply' }).click()
  await expect
    .poll(async () => floe('setting', 'list', 'profiled', 'max_wal_size'), { timeout: 60_000 })
    .toContain('256MB')
  expect(await floe('setting', 'history', 'profiled')).toContain('autovacuum_naptime')
})

type Mapped = {
  instances: { name: string }[]
  resources: {
    resource: string
    size: number | null
    used: (number | null)[]
    others: number | null
    left: number | null
  }[]
}

/** Width of the parts of a bar together, as a share of it. */
const filled = (page: Page, resource: string) =>
  page
    .locator(`[data-resource="${resource}"]`)
    .evaluate(
      (bar) =>
        [...bar.children].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0) /
        bar.clientWidth,
    )

test('the host’s page is a map of the machine: who uses how much now, in parts that add up', async ({
  page,
}) => {
  const [own] = await floeJson<{ name: string }[]>('host', 'list')
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/hosts/${own?.name}`)
  const row = page
    .getByRole('table', { name: `Who uses what of ${own?.name}` })
    .getByRole('row', { name: /^profiled/ })
  // its size is known once a minute
  await expect(row).toContainText(/core.*[kMG]B.*[kMG]B.*B\/s.*B\/s/, { timeout: 90_000 })
  await expect(page.getByText(/^Disk \S+ was busy \d+ % of the last seconds/).first()).toBeVisible()
  await looksRight(page, 'host-map')
  const told = await floeJson<Mapped>('host', 'map')
  const at = told.instances.findIndex((i) => i.name === 'profiled')
  for (const { resource, size, used, others, left } of told.resources) {
    expect(used[at], resource).not.toBeNull()
    expect(others, resource).not.toBeNull()
    if (size === null) continue
    const sum = used.reduce<number>((all, value) => all + (value ?? 0), 0) + (others ?? 0) + (left ?? 0)
    expect(Math.abs(sum - size) / size, `${resource} of ${size}`).toBeLessThan(0.01)
  }
  const space = told.resources.find((r) => r.resource === 'space')
  const share = 1 - (space?.left ?? 0) / (space?.size ?? 1)
  expect(Math.abs((await filled(page, 'space')) - share)).toBeLessThan(0.05)
  expect(await floe('host', 'map')).toMatch(/Disk \S+ was busy \d+ % of the last seconds/)
  await floe('instance', 'limit', 'profiled', '--cpu', '500')
  await expect(page.getByText('over-committed')).toBeVisible({ timeout: 30_000 })
  await floe('instance', 'stop', 'profiled')
  await expect(row).toContainText(/stopped.*0\.00 cores/, { timeout: 30_000 })
})

test('an instance is found by a part of its name, in the list and by the verb', async ({ page }) => {
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances`)
  await page.getByRole('searchbox').fill('rofile')
  const names = page
    .getByRole('table', { name: 'Instances' })
    .getByRole('row')
    .filter({ hasText: /rofile/ })
  await expect(names).toHaveCount(1)
  // the search is in the address: the link can be shared
  await expect(page).toHaveURL(/search=rofile/)
  await page.getByRole('link', { name: 'profiled', exact: true }).click()
  await expect(page.getByRole('heading', { name: 'profiled' })).toBeVisible()
  const found = await floeJson<{ name: string }[]>('instance', 'list', '--search', 'rofile')
  expect(found.map((i) => i.name)).toEqual(['profiled'])
  expect(await floeJson('instance', 'list', '--search', 'no such instance')).toEqual([])
})
