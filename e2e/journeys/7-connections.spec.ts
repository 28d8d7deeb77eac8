import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { expect, type Locator, type Page, test } from '@playwright/test'
import { floe, floeJson, startProgram } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance, engineProgram, restInstances, sql } from '../fixtures/instance'
import { openInstance } from '../fixtures/instance-page'
import { looksRight } from '../fixtures/looks-right'
import { signIn } from '../fixtures/owner'
import { pidOf } from '../fixtures/processes'

test.afterAll(restInstances)

/** Sessions at once; the workers of an instance as it is made are a fifth of its max_connections. */
const CLIENTS = 200

type SharedServer = {
  port: number | null
  counts: { shared: number; dedicated: number; workers: number; transactions: number } | null
  pinned: { reason: string; sessions: number }[]
}
const asked = async () =>
  (await floeJson<{ sharedServer: SharedServer }>('instance', 'connections', 'pooled')).sharedServer

/** A port that nobody had a moment ago. */
const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

const card = (page: Page, title: RegExp) =>
  page.locator('section', { has: page.getByRole('heading', { level: 2, name: title }) })
/** The value beside a label of a card. */
const fact = (of: Locator, label: string) =>
  of
    .locator('dl > div', { has: of.page().locator('dt', { hasText: new RegExp(`^${label}$`) }) })
    .locator('dd')
const count = async (of: Locator, label: string) =>
  Number((await fact(of, label).innerText()).replace(/[^\d].*$/s, ''))

/** pgbench through the shared port, with a script, until it is stopped. */
function load(port: number, instance: CreatedInstance, clients: number, script: string) {
  const file = test.info().outputPath(`script-${clients}.sql`)
  writeFileSync(file, script)
  return startProgram(
    engineProgram('pgbench'),
    ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', '-n', '-f', file].concat([
      '-c',
      String(clients),
      '-j',
      '1',
      '-T',
      '900',
      'postgres',
    ]),
    { PGPASSWORD: instance.password, PGSSLMODE: 'disable' },
  )
}

let instance: CreatedInstance
let port: number
test.beforeAll(async () => {
  instance = await createInstance('pooled')
  port = await freePort()
})

test('Shared Server is off until it is turned on in the browser, which says what that needs', async ({
  page,
}) => {
  expect(await floe('instance', 'connections', 'pooled')).toMatch(/^Shared Server is off/)
  await signIn(page)
  await openInstance(page, 'pooled', 'Connections')
  const form = card(page, /^Turn on Shared Server/)
  await expect(form).toContainText('Experimental')
  await expect(page.getByText('A client that uses TLS gets a backend of its own')).toBeVisible()
  const settings = page.getByRole('table', { name: 'Settings of Shared Server' })
  await expect(settings.getByRole('row', { name: /^polar_ss_port/ })).toContainText('restart')
  await expect(settings.getByRole('row', { name: /^polar_enable_shared_server/ })).toContainText('reload')
  await form.getByLabel('Shared port').fill('80')
  await expect(form.getByRole('alert')).toContainText('from 1024 to 65535')
  await expect(form.getByRole('button', { name: 'Turn on' })).toBeDisabled()
  await form.getByLabel('Shared port').fill(String(port))
  await looksRight(page, 'connections-off')
  await form.getByRole('button', { name: 'Turn on' }).click()

  const dialog = page.getByRole('dialog')
  await expect(dialog.getByRole('row', { name: /polar_ss_port/ })).toContainText(String(port), {
    timeout: 60_000,
  })
  await dialog.getByLabel('Restart the instance now').check()
  await dialog.getByRole('button', { name: 'Apply' }).click()
  const server = card(page, /^Shared Server/)
  await expect(server.getByText('On', { exact: true })).toBeVisible({ timeout: 90_000 })
  await expect(page.getByText('No session is pinned')).toBeVisible()
  await expect(page.getByText('No pool yet')).toBeVisible()

  await page.getByRole('link', { name: 'Connect', exact: true }).click()
  await expect(page.getByTestId('shared-connection-uri')).toContainText(`:${port}/postgres?sslmode=disable`)
  await page.getByRole('link', { name: 'Settings', exact: true }).click()
  await page.getByRole('link', { name: 'History', exact: true }).click()
  await expect(page.getByText('polar_ss_port').first()).toBeVisible()
})

test('many sessions on few workers, one that is pinned and why, and a dispatcher that stands still', async ({
  page,
}) => {
  test.setTimeout(300_000)
  await signIn(page)
  await openInstance(page, 'pooled', 'Connections')
  const server = card(page, /^Shared Server/)
  const running = [
    load(port, instance, CLIENTS, 'select count(*) from pg_namespace, pg_sleep(0.02);\n'),
    load(
      port,
      instance,
      1,
      'set client_min_messages = error;\ncreate temporary table if not exists kept (n int);\nselect pg_sleep(0.02);\n',
    ),
  ]
  try {
    await expect.poll(() => count(server, 'Shared sessions'), { timeout: 90_000 }).toBe(CLIENTS)
    const reasons = page.getByRole('table', { name: 'Reasons why sessions are pinned' })
    const row = reasons.getByRole('row', { name: /^temporary objects/ })
    await expect(row).toContainText('Drop temporary tables', { timeout: 60_000 })
    expect(await count(server, 'Dedicated sessions')).toBe(1)
    // reserved workers are named besides those that the setting allows
    await expect(fact(server, 'Workers')).toHaveText(
      /^\d+ (of at most \d+|and \d+ in reserve, .+), \d+ free$/,
    )
    await expect(fact(server, 'Wait, p99')).toContainText(/ms|s/)
    const pools = page.getByRole('table', { name: 'Pools', exact: true })
    await expect(pools.getByRole('row', { name: /^postgres postgres/ })).toContainText(String(CLIENTS + 1))
    // the samples have arrived, too
    await expect(page.getByRole('figure', { name: 'Sessions', exact: true })).toBeVisible()
    await looksRight(page, 'connections')

    const seen = await asked()
    expect(seen).toMatchObject({ port, pinned: [{ reason: 'temporary objects', sessions: 1 }] })
    const text = await floe('instance', 'connections', 'pooled')
    expect(text).toMatch(/temporary objects +1 +Drop temporary tables/)
    expect(text).toContain(`:${port}/postgres?sslmode=disable`)
    // sessions are more than the backends that PostgreSQL has for all
    const backends = await sql(
      instance.connectionString,
      "select count(*) from pg_stat_activity where backend_type = 'client backend'",
    )
    expect(Number(backends)).toBeLessThan(CLIENTS / 2)

    // an agent that stands still says nothing: what it said last is no state of now
    const agent = pidOf('agent')
    process.kill(agent, 'SIGSTOP')
    try {
      await expect(server.getByText('On when last seen')).toBeVisible({ timeout: 30_000 })
      await expect(server.getByRole('button', { name: 'Turn off' })).toBeDisabled()
      // what is grey because it is old has less contrast on purpose
      await page.screenshot({ path: test.info().outputPath('connections-stale.png'), fullPage: true })
    } finally {
      process.kill(agent, 'SIGCONT')
    }
    await expect(server.getByText('On', { exact: true })).toBeVisible({ timeout: 60_000 })

    const pid = Number(await sql(instance.connectionString, 'select pid from polar_stat_dispatcher'))
    process.kill(pid, 'SIGSTOP')
    try {
      await expect(server.getByText('Dispatcher down')).toBeVisible({ timeout: 30_000 })
      await expect(page.getByText('The dispatcher is stopped by a signal.')).toBeVisible()
      await looksRight(page, 'connections-down')
      await page.goto(`${process.env.FLOE_E2E_URL}/incidents`)
      const incident = page
        .getByRole('listitem')
        .filter({ hasText: 'instance "pooled" does not serve its shared port' })
      await expect(incident).toContainText('critical', { timeout: 60_000 })
      await expect(incident.getByRole('link', { name: 'pooled' })).toHaveAttribute(
        'href',
        '/instances/pooled/connections',
      )
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    const closed = async () => {
      const incidents = await floeJson<{ title: string; closedBecause: string | null }[]>(
        ...['incident', 'list', '--state', 'closed', '--instance', 'pooled'],
      )
      return incidents.find((i) => i.title.endsWith('does not serve its shared port'))?.closedBecause
    }
    await expect.poll(closed, { timeout: 60_000 }).toMatch(/^Every dispatcher answers/)
  } finally {
    for (const program of running) await program.stop()
  }
})

test('turned off by a reload, and the port is closed with a restart', async ({ page }) => {
  await signIn(page)
  await openInstance(page, 'pooled', 'Connections')
  const server = card(page, /^Shared Server/)
  await server.getByRole('button', { name: 'Turn off' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByRole('row', { name: /polar_enable_shared_server/ })).toContainText('reload', {
    timeout: 60_000,
  })
  await dialog.getByRole('button', { name: 'Apply' }).click()
  await expect(server.getByText('Off for new sessions', { exact: true })).toBeVisible({ timeout: 60_000 })
  expect(await floe('instance', 'connections', 'pooled')).toContain('Off for new sessions')

  await server.getByRole('button', { name: 'Close the port' }).click()
  await expect(dialog.getByRole('row', { name: /polar_ss_port/ })).toContainText('restart', {
    timeout: 60_000,
  })
  await dialog.getByLabel('Restart the instance now').check()
  await dialog.getByRole('button', { name: 'Apply' }).click()
  await expect(card(page, /^Turn on Shared Server/)).toBeVisible({ timeout: 90_000 })
  expect((await asked()).port).toBeNull()

  await floe('instance', 'stop', 'pooled')
  await expect(page.getByText('pooled does not run')).toBeVisible()
  await looksRight(page, 'connections-stopped')
})
