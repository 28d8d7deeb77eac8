import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, type Page, test } from '@playwright/test'
import { floe, floeJson } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance, sql } from '../fixtures/instance'
import { looksRight } from '../fixtures/looks-right'
import { signIn } from '../fixtures/owner'
import { pidOf } from '../fixtures/processes'
import { SecondHost } from '../fixtures/second-host'

test.describe.configure({ mode: 'serial' })

type Shown = {
  host: { facts: { engineBuild?: string } | null }
  instanceList: { name: string; engine: { running: string | null; current: boolean } | null }[]
}
type Planned = { plan: { build: string; clusters: { steps: { action: string; member: string }[] }[] } }

let host: SecondHost
let first: CreatedInstance
const shown = () => floeJson<Shown>('host', 'show', 'older')
const engineCard = (page: Page) =>
  page.locator('section').filter({ has: page.getByRole('heading', { name: 'Engine', exact: true }) })
const installed = async () => (await shown()).host.facts?.engineBuild

// a host whose instances were made with an earlier build
test.beforeAll(async () => {
  host = await SecondHost.prepare()
  const { command } = await floeJson<{ command: string }>('host', 'add', 'older')
  const enrolled = await host.enrol(command)
  expect([enrolled.status, enrolled.stderr]).toEqual([0, expect.any(String)])
  const former = join(host.home, 'release-former')
  cpSync(process.env.FLOE_E2E_ENGINE as string, former, { recursive: true, verbatimSymlinks: true })
  const file = join(host.home, 'config.json')
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), enginePrefix: former }))
  // its supervisor starts it again, with what the file says now
  process.kill(pidOf('agent', host.home), 'SIGKILL')
  await expect.poll(installed, { timeout: 60_000 }).toBe('release-former')
  first = await createInstance('moved', '--host', 'older')
  await sql(first.connectionString, 'create table kept as select generate_series(1, 100) n')
  await floe('standby', 'create', 'moved', 'moved-2', '--host', 'older')
  await createInstance('resting', '--host', 'older')
  await floe('instance', 'stop', 'resting')
})
// the journeys after it find the one host again that there was before
test.afterAll(async () => {
  const { cluster } = await floeJson<{
    cluster: { primaryInstanceId: string; members: { instanceId: string; name: string }[] }
  }>('cluster', 'show', 'moved')
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  for (const { name } of cluster.members.filter((m) => m !== primary))
    await floe('standby', 'remove', name, '--confirm', name)
  for (const name of [String(primary?.name), 'resting'])
    await floe('instance', 'delete', name, '--confirm', name)
  await floe('host', 'revoke', 'older', '--confirm', 'older')
  await floe('host', 'remove', 'older', '--confirm', 'older')
})
// with a time of its own: after a failure the console may wait in vain for it, and it must not stay
test.afterAll(() => host.remove())

test('a newer engine on a host moves nobody: page and verb show who runs an older one, and the plan', async ({
  page,
}) => {
  expect(await floe('host', 'upgrade', 'older')).toContain('On it already: moved, moved-2')
  // as after "git pull" on the host
  expect((await host.run('./floe agent start')).status).toBe(0)
  await expect.poll(installed, { timeout: 60_000 }).not.toBe('release-former')
  await expect
    .poll(async () => (await shown()).instanceList.map(({ name, engine }) => [name, engine?.current]), {
      timeout: 60_000,
    })
    .toEqual([
      ['moved', false],
      ['moved-2', false],
      ['resting', false],
    ])
  const { plan } = await floeJson<Planned>('host', 'upgrade', 'older')
  expect(plan.clusters.flatMap(({ steps }) => steps.map((s) => `${s.action} ${s.member}`))).toEqual([
    'restart-standby moved-2',
    'switchover moved-2',
    'restart-former-primary moved',
  ])
  expect(await floe('host', 'show', 'older')).toContain('3 of them on another build')
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/hosts/older`)
  const card = engineCard(page)
  await expect(card.getByRole('listitem')).toHaveCount(4)
  // its steps name the build, too
  await expect(card.getByText(plan.build, { exact: true })).toBeVisible()
  await expect(card.getByText(/resting: it is stopped/)).toBeVisible()
  await expect(page.getByText('not the installed one')).toHaveCount(3)
  await looksRight(page, 'host-upgrade-plan')
})

test('the button does what the plan lists, once the name of the host is typed; rows are kept and the history tells', async ({
  page,
}) => {
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/hosts/older`)
  const card = engineCard(page)
  await card.getByRole('button', { name: 'Upgrade instances' }).click()
  const dialog = page.getByRole('dialog')
  const confirm = dialog.getByRole('button', { name: 'Upgrade instances' })
  await expect(confirm).toBeDisabled()
  await dialog.getByLabel(/Switch over again afterwards/).click()
  await dialog.getByLabel(/to confirm/).fill('older')
  await looksRight(page, 'host-upgrade-dialog')
  await confirm.click()
  await expect(card.getByText(/At work: an upgrade/)).toBeVisible()
  await expect(card.getByText(/it came to its end/)).toBeVisible({ timeout: 120_000 })
  await expect(card.getByRole('link', { name: 'Switch moved back' })).toBeVisible()
  await looksRight(page, 'host-upgraded')
  const { instanceList } = await shown()
  expect(instanceList.map(({ name, engine }) => [name, engine?.current])).toEqual([
    ['moved', true],
    ['moved-2', true],
    ['resting', false],
  ])
  expect(await sql(first.connectionString, 'select count(*) from kept')).toBe('100')
  expect(await sql(first.connectionString, 'select pg_is_in_recovery()')).toBe('f')
  const audit = await floe('audit', 'list')
  for (const action of ['host.upgrade', 'engine.upgrade', 'cluster.switchover'])
    expect(audit).toContain(action)
  // what is left is moved once it runs, by the verb
  await floe('instance', 'start', 'resting')
  expect(await floe('host', 'upgrade', 'older', '--confirm', 'older')).toContain('cluster "resting"')
  expect(await floe('host', 'upgrade', 'older')).toContain('There is nothing to do.')
})
