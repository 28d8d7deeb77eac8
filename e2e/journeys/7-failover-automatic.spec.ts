import { expect, type Page, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floe, floeJson } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance } from '../fixtures/instance'
import { startLedger } from '../fixtures/ledger'
import { looksRight } from '../fixtures/looks-right'
import { signIn } from '../fixtures/owner'
import { SecondHost } from '../fixtures/second-host'

test.describe.configure({ mode: 'serial' })

type Shown = {
  cluster: {
    primaryInstanceId: string
    automatic: { afterMs: number } | null
    holdings: { floor: boolean }
    members: { instanceId: string; name: string; hostName: string; memberRole: string }[]
  }
  connections: { primary: { uri: string } }
  openOperation: object | null
}

const names = ['auto', 'auto-2', 'auto-3'] as const
const hosts = new Map<string, SecondHost>()
let first: CreatedInstance

// one host each: the console's own machine holds none of them
test.beforeAll(async () => {
  await Promise.all(
    names.map(async (name) => {
      const host = await SecondHost.prepare()
      hosts.set(`of-${name}`, host)
      const { command } = await floeJson<{ command: string }>('host', 'add', `of-${name}`)
      const enrolled = await host.enrol(command)
      expect([enrolled.status, enrolled.stderr]).toEqual([0, expect.any(String)])
    }),
  )
  first = await createInstance('auto', '--host', 'of-auto')
  for (const name of names.slice(1)) await floe('standby', 'create', 'auto', name, '--host', `of-${name}`)
})
// the journeys after it find the one host again that there was before
test.afterAll(async () => {
  await floe('cluster', 'automatic', 'auto', 'off')
  const { cluster } = await shown()
  const primary = (m: (typeof cluster.members)[number]) => m.instanceId === cluster.primaryInstanceId
  for (const { name } of cluster.members.filter((m) => !primary(m)))
    await floe('standby', 'remove', name, '--confirm', name)
  for (const { name } of cluster.members.filter(primary))
    await floe('instance', 'delete', name, '--confirm', name)
  for (const name of hosts.keys()) {
    await floe('host', 'revoke', name, '--confirm', name)
    await floe('host', 'remove', name, '--confirm', name)
  }
})
// with a time of its own: after a failure the console may wait in vain for a host that is dead, and none of them may stay
test.afterAll(() => Promise.all([...hosts.values()].map((host) => host.remove())))

const shown = () => floeJson<Shown>('cluster', 'show', 'auto')
const toPrimary = async () =>
  (await shown()).connections.primary.uri.replace('postgres@', `postgres:${first.password}@`)
const replicationOf = (page: Page, name: string, more = '') =>
  page.goto(`${process.env.FLOE_E2E_URL}/instances/${name}/replication${more}`)
const card = (page: Page, title: string) =>
  page.locator('section').filter({ has: page.getByRole('heading', { name: title }) })
/** Of the topology: the primary comes first. */
const shownPrimary = (page: Page) => page.getByRole('figure', { name: 'Topology' }).getByRole('link').first()

test('automatic failover is refused with its reason, and turned on from the page once nothing is against it', async ({
  page,
}) => {
  await signIn(page)
  await replicationOf(page, 'auto')
  const automatic = card(page, 'Automatic failover')
  await expect(automatic.getByText('Commits wait for no standby.')).toBeVisible()
  await expect(automatic.getByRole('button', { name: 'Turn on' })).toBeDisabled()
  await checkAccessibility(page)

  await page.getByText('Any N of', { exact: true }).click()
  await page.getByLabel('Strict').click()
  await card(page, 'Synchronous replication').getByRole('button', { name: 'Apply' }).click()
  const turnOn = automatic.getByRole('button', { name: 'Turn on' })
  await expect(turnOn).toBeEnabled({ timeout: 30_000 })
  await turnOn.click()
  await expect(automatic.getByRole('button', { name: 'Turn off' })).toBeEnabled({ timeout: 30_000 })
  expect((await shown()).cluster.automatic).toMatchObject({ afterMs: 5_000 })
  await looksRight(page, 'on')

  // a proof is of every commit once all that was written before has been confirmed
  await expect.poll(async () => (await shown()).cluster.holdings.floor, { timeout: 20_000 }).toBe(true)
})

test('the primary’s host dies under load: the page shows who took over, and the operation who decided, why, and the proof', async ({
  page,
}) => {
  await signIn(page)
  await replicationOf(page, 'auto')
  await expect(shownPrimary(page)).toHaveText('auto')
  const ledger = await startLedger(await toPrimary(), 'written')
  try {
    await ledger.goesOn(20)
    await hosts.get('of-auto')?.die()
    // from here on nobody does anything but look
    await expect(shownPrimary(page)).toHaveText(/^auto-[23]$/, { timeout: 45_000 })
    const promoted = (await shownPrimary(page).textContent()) as string
    await ledger.goesOn(20)

    await page.getByRole('link', { name: /^Failover to/ }).click()
    await expect(page.getByRole('heading', { level: 1, name: `Failover ${promoted}` })).toBeVisible()
    await expect(page.getByText('succeeded', { exact: true }).first()).toBeVisible({ timeout: 30_000 })
    await expect(page.getByText(/^by Controller/)).toBeVisible()
    const outcome = card(page, 'Request and outcome')
    await expect(outcome.getByText(`"${promoted}" holds every commit that was acknowledged`)).toBeVisible()
    const reasons = outcome.getByRole('list', { name: 'Why it was decided' }).getByRole('listitem')
    await expect(reasons.first()).toHaveText(
      /^Host "of-auto" of the primary "auto" has not answered for [\d.]+ s\.$/,
    )
    for (const name of names.slice(1))
      await expect(reasons.filter({ hasText: `"${name}" has received nothing from it` })).toHaveCount(1)
    await expect(outcome.getByRole('table', { name: 'WAL on each member' })).toContainText('no answer')
    await expect(outcome.getByText('The former primary was not fenced')).toBeVisible()
    await looksRight(page, 'operation')

    const { acknowledged, lost } = await ledger.stop()
    expect(acknowledged).toBeGreaterThanOrEqual(40)
    expect(lost).toEqual([])
  } finally {
    await ledger.end()
  }
})

test('the host comes back: the former primary is fenced, and is rejoined by its button', async ({ page }) => {
  await signIn(page)
  await replicationOf(page, 'auto')
  await expect(page.getByText('"auto" is not fenced yet')).toBeVisible()
  // nowhere is it called fenced before its agent has said so
  const topology = page.getByRole('figure', { name: 'Topology' })
  await expect(topology.getByText('to be fenced', { exact: true })).toHaveCount(2)
  expect(await floe('cluster', 'show', 'auto')).toContain('to be fenced')
  // it still belongs to the set, and the next failover misses it
  const set = card(page, 'Synchronous replication')
  await expect(set.getByRole('checkbox', { name: /auto on of-auto, to be rejoined first/ })).toBeChecked()
  await expect(set.getByRole('button', { name: 'Apply' })).toBeDisabled()
  await expect(page.getByText('No automatic failover at the moment')).toBeVisible({ timeout: 30_000 })
  await looksRight(page, 'host-away')
  const started = await hosts.get('of-auto')?.run('./floe agent start')
  expect([started?.status, started?.stderr]).toEqual([0, expect.any(String)])
  await expect(page.getByText('"auto" is fenced')).toBeVisible({ timeout: 30_000 })
  await expect(topology.getByText('fenced', { exact: true })).toHaveCount(2)
  await expect.poll(async () => (await shown()).openOperation, { timeout: 30_000 }).toBeNull()
  await expect(floe('instance', 'start', 'auto')).rejects.toThrow(/fenced/)

  const row = page
    .getByRole('table', { name: 'Standbys of auto' })
    .getByRole('row')
    .filter({ has: page.getByRole('cell', { name: 'auto', exact: true }) })
  await row.getByRole('button', { name: 'Rejoin' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rejoin' }).click()
  await expect(row.getByRole('cell').nth(4)).toHaveText(/^active/, { timeout: 60_000 })
  // it streams before the last step of its rejoin has recorded it
  await expect
    .poll(async () => (await shown()).cluster.members.map((m) => m.memberRole).toSorted(), {
      timeout: 60_000,
    })
    .toEqual(['primary', 'standby', 'standby'])
  await expect.poll(async () => (await shown()).openOperation, { timeout: 30_000 }).toBeNull()
  // the set that commits wait for has it again, and the next failover has its witnesses
  await expect(page.getByText('No automatic failover at the moment')).toHaveCount(0, { timeout: 30_000 })
})
