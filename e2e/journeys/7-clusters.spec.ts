import { expect, type Locator, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floe, floeJson } from '../fixtures/floe-command'
import { breakConfiguration, type CreatedInstance, createInstance, sql } from '../fixtures/instance'
import { openInstance } from '../fixtures/instance-page'
import { signIn } from '../fixtures/owner'

test.describe.configure({ mode: 'serial' })

type Shown = {
  cluster: {
    primaryInstanceId: string
    members: { instanceId: string; name: string; role: string | null; state: string; memberRole: string }[]
  }
  connections: { primary: { uri: string } }
}

let first: CreatedInstance
test.beforeAll(async () => {
  first = await createInstance('pair')
  await sql(first.connectionString, 'create table kept (n int)')
})

const shown = () => floeJson<Shown>('cluster', 'show', 'pair')
const primaryName = async () => {
  const { cluster } = await shown()
  return cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)?.name
}
/** The connection that finds the primary by itself, with the password of the role. */
const toPrimary = async () =>
  (await shown()).connections.primary.uri.replace('postgres@', `postgres:${first.password}@`)

test('a standby is created from the page, followed to its end, and seen to follow', async ({ page }) => {
  await signIn(page)
  await openInstance(page, 'pair')
  await page.getByRole('link', { name: 'Replication' }).click()
  await expect(page.getByText('No standby yet')).toBeVisible()
  await page.getByRole('button', { name: 'Create standby' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByLabel('Name')).toHaveValue('pair-2')
  await dialog.getByRole('button', { name: 'Create standby' }).click()
  await expect(page.getByRole('heading', { name: /Create standby/ })).toBeVisible()
  await expect
    .poll(async () => (await shown()).cluster.members.map((m) => m.role), { timeout: 60_000 })
    .toEqual(['primary', 'standby'])
  await openInstance(page, 'pair')
  await page.getByRole('link', { name: 'Replication' }).click()
  await expect(page.getByRole('figure', { name: 'Topology' }).getByText('streaming')).toBeVisible()
  await checkAccessibility(page)
})

test('commits are made to wait for it, and what each level may lose stands beside it', async ({ page }) => {
  await signIn(page)
  await openInstance(page, 'pair')
  await page.getByRole('link', { name: 'Replication' }).click()
  await expect(page.getByText('Whatever the standbys had not received yet')).toBeVisible()
  await page.getByText('Any of', { exact: true }).click()
  await page.getByRole('button', { name: 'Apply' }).click()
  await expect
    .poll(async () => sql(await toPrimary(), 'show synchronous_standby_names'), { timeout: 30_000 })
    .toBe('ANY 1 ("pair-2")')
})

test('the page says before what a switchover does, and clients find the new primary by the same connection', async ({
  page,
}) => {
  await signIn(page)
  await openInstance(page, 'pair')
  await page.getByRole('link', { name: 'Replication' }).click()
  await page.getByRole('link', { name: 'Switch over' }).click()
  await expect(page.getByRole('cell', { name: '0 bytes' }).first()).toBeVisible()
  await expect(page.getByText('Clients can write during it?')).toBeVisible()
  await checkAccessibility(page)
  await page.getByRole('button', { name: 'Switch over to pair-2' }).click()
  await expect.poll(primaryName, { timeout: 60_000 }).toBe('pair-2')
  await expect
    .poll(async () => sql(await toPrimary(), 'insert into kept values (1) returning n').catch(String), {
      timeout: 30_000,
    })
    .toBe('1')
  await expect
    .poll(async () => (await shown()).cluster.members.map((m) => m.role))
    .toEqual(['primary', 'standby'])
})

/** Waits for what the members say; one on a busy machine may have to be asked again. */
const reviewed = (dialog: Locator) =>
  expect(async () => {
    const again = dialog.getByRole('button', { name: 'Try again' }).first()
    if (await again.isVisible()) await again.click()
    await expect(dialog.getByRole('listitem').first()).toBeVisible({ timeout: 8_000 })
  }).toPass({ timeout: 60_000 })

// the former standby is the primary from here on
test('a setting is changed on all members from the page, in the order it names, and taken back with one press', async ({
  page,
}) => {
  test.setTimeout(180_000)
  const values = () =>
    Promise.all(
      ['pair', 'pair-2'].map(
        async (name) =>
          (await floeJson<{ shown: string }[]>('setting', 'list', name, 'max_connections'))[0]?.shown,
      ),
    )
  const before = await values()
  await signIn(page)
  await openInstance(page, 'pair')
  await page.getByRole('link', { name: 'Settings', exact: true }).click()
  await page.getByRole('link', { name: 'Cluster', exact: true }).click()
  await checkAccessibility(page)
  await page.getByRole('button', { name: 'Change max_connections on all members' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('New value').fill('150')
  await dialog.getByRole('button', { name: 'Review changes' }).click()
  await reviewed(dialog)
  await expect(dialog.getByRole('listitem').first()).toHaveText(
    'Standbys, one after the other: pair (restart)',
  )
  await expect(dialog.getByText('The primary is restarted')).toBeVisible()
  await dialog.getByLabel('Why').fill('more clients')
  await dialog.getByRole('button', { name: 'Apply to all members' }).click()
  await expect(page.getByText('Confirmed by every member')).toBeVisible({ timeout: 90_000 })
  expect(await values()).toEqual(['150', '150'])
  await expect(page.getByRole('table', { name: /History/ }).getByText('more clients')).toHaveCount(2)
  await checkAccessibility(page)
  // one member alone is told why not
  await expect(floe('setting', 'set', 'pair-2', 'max_connections=50')).rejects.toThrow(
    /changed for the whole cluster/,
  )

  await page
    .getByRole('button', { name: /Roll back all members to/ })
    .first()
    .click()
  await reviewed(dialog)
  await expect(dialog.getByRole('listitem').first()).toHaveText('The primary: pair-2 (restart)')
  await dialog.getByRole('button', { name: 'Roll back all members' }).click()
  await expect.poll(() => values().catch(() => []), { timeout: 90_000 }).toEqual(before)
  expect((await shown()).cluster.members.map((m) => m.state)).toEqual(['running', 'running'])
})

test('a killed primary is replaced by command, nothing acknowledged is lost, and it comes back as a standby', async () => {
  await sql(await toPrimary(), 'insert into kept values (2)')
  const { postmasterPid, directory } = await floeJson<{ postmasterPid: number; directory: string }>(
    'instance',
    'show',
    'pair-2',
  )
  // a crashed instance is started by itself, unless it cannot start
  const { mend } = breakConfiguration(directory)
  process.kill(postmasterPid, 'SIGKILL')
  await expect
    .poll(async () => (await shown()).cluster.members.find((m) => m.name === 'pair-2')?.state)
    .toBe('crashed')
  await floe('cluster', 'failover', 'pair')
  mend()
  expect(await primaryName()).toBe('pair')
  expect(await sql(await toPrimary(), 'select count(*) from kept where n in (1, 2)')).toBe('2')
  await expect(floe('instance', 'start', 'pair-2')).rejects.toThrow(/fenced/)
  await floe('standby', 'rejoin', 'pair-2')
  expect((await shown()).cluster.members.map((m) => m.memberRole)).toEqual(['primary', 'standby'])
})
