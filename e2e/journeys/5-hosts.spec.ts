import { expect, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floe, floeJson } from '../fixtures/floe-command'
import { createInstance, restInstances, sql } from '../fixtures/instance'
import { signIn } from '../fixtures/owner'
import { SecondHost } from '../fixtures/second-host'

test.describe.configure({ mode: 'serial' })

/** The host's page has another table with a row for each: of who uses what. */
const instancesOfHost = { name: 'Instances of this host' }

type Host = { hostId: string; name: string; state: string; revokedAt: number | null; instances: number }
type Operation = { state: string; fault: { code: string; message: string } | null }

let second: SecondHost
let command: string
test.beforeAll(async () => {
  second = await SecondHost.prepare()
})
test.afterAll(() => second.remove())
test.afterAll(restInstances)

const hostNamed = async (name: string) =>
  (await floeJson<Host[]>('host', 'list')).find((host) => host.name === name)

test('a host is enrolled by one command that the page shows, and its agent answers', async ({ page }) => {
  await signIn(page)
  await page.getByRole('link', { name: 'Hosts' }).first().click()
  await expect(page.getByRole('heading', { name: 'Hosts', level: 1 })).toBeVisible()
  await page.getByRole('button', { name: 'Add host' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('not a name')
  await dialog.getByRole('button', { name: 'Get a token' }).click()
  await expect(dialog.getByText(/must consist of letters/)).toBeVisible()
  await dialog.getByLabel('Name').fill('second')
  await dialog.getByRole('button', { name: 'Get a token' }).click()
  await expect(dialog.getByText(/Waiting for second/)).toBeVisible()
  await checkAccessibility(page)
  command = (await dialog.getByTestId('enrol-command').innerText()).trim()
  expect(command).toMatch(
    /^echo floe-\S+ \| \.\/floe agent enrol --console http:\S+ --authority sha256:[0-9a-f]{64} --token -$/,
  )

  // another console's fingerprint: the host keeps nothing, and the token is still good for this very host
  const wrong = await second.enrol(command.replace(/[0-9a-f]{64}(?= --token)/, 'a'.repeat(64)))
  expect([wrong.status, wrong.stderr]).toEqual([1, expect.stringContaining('not the one this command names')])

  const enrolled = await second.enrol(command)
  expect([enrolled.status, enrolled.stderr]).toEqual([0, expect.any(String)])
  await expect(dialog.getByText('second is enrolled')).toBeVisible({ timeout: 30_000 })
  await dialog.getByRole('link', { name: 'Open second' }).click()
  await expect(page.getByRole('heading', { name: 'second', level: 1 })).toBeVisible()
  await expect(page.getByText('online', { exact: true })).toBeVisible()
  for (const fact of ['Processors', 'Memory available', 'Certificate ends', 'Version'])
    await expect(page.getByText(fact, { exact: true }).first()).toBeVisible()
  const disks = page.getByRole('table', { name: 'Disks of second' })
  for (const column of ['Mount', 'Device', 'File system', 'Mount options', 'Free'])
    await expect(disks.getByRole('columnheader', { name: column, exact: true })).toBeVisible()
  await expect(disks.getByText(/NVMe/).first()).toBeVisible()
  await checkAccessibility(page)
})

test('a token that was used enrols nobody else, and a host of another console has no verbs of the console', async () => {
  const third = await SecondHost.prepare()
  try {
    const again = await third.enrol(command)
    expect([again.status, again.stderr]).toEqual([1, expect.stringContaining('this token was already used')])
    const status = await second.run('./floe status')
    expect([status.status, status.stderr]).toEqual([1, expect.stringContaining('another machine’s console')])
    expect(JSON.parse((await second.run('./floe agent status --json')).stdout)).toMatchObject({
      hostName: 'second',
      state: 'running',
    })
  } finally {
    await third.remove()
  }
})

test('an instance is made on the named host, and is greyed with the host’s age when its agent is silent', async ({
  page,
}) => {
  const instance = await createInstance('on-second', '--host', 'second')
  expect(await sql(instance.connectionString, 'SELECT 1')).toBe('1')
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/hosts/second`)
  const row = page.getByRole('table', instancesOfHost).getByRole('row', { name: /on-second/ })
  await expect(row.getByText('running')).toBeVisible()
  await expect(row).toHaveAttribute('data-stale', 'false')
  expect((await second.run('./floe agent stop')).status).toBe(0)
  await expect(page.getByText('stale', { exact: true })).toBeVisible({ timeout: 30_000 })
  await expect(page.getByText(/As last seen .* ago; not known now/)).toBeVisible()
  await expect(row).toHaveAttribute('data-stale', 'true')
  // the instance does not need its agent
  expect(await sql(instance.connectionString, 'SELECT 2')).toBe('2')
  await expect(page.getByText('offline', { exact: true })).toBeVisible({ timeout: 60_000 })
  expect((await hostNamed('second'))?.state).toBe('offline')
  expect((await second.run('./floe agent start')).status).toBe(0)
  await expect(page.getByText('online', { exact: true })).toBeVisible({ timeout: 30_000 })
  await expect(row).toHaveAttribute('data-stale', 'false')
})

test('a host that is revoked in the middle of an operation: the operation fails and says so, the page too; enrolled again it is back', async ({
  page,
}) => {
  expect((await second.run('./floe agent stop')).status).toBe(0)
  const { operationId } = await floeJson<{ operationId: string }>(
    'instance',
    'stop',
    'on-second',
    '--no-wait',
  )
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/hosts/second`)
  await page.getByRole('button', { name: 'Revoke host' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByRole('button', { name: 'Revoke host' })).toBeDisabled()
  await dialog.getByRole('textbox').fill('second')
  await checkAccessibility(page)
  await dialog.getByRole('button', { name: 'Revoke host' }).click()
  await expect(page.getByText(/^Revoked by Olga Owner at/)).toBeVisible()
  await expect(page.getByText('unknown', { exact: true }).first()).toBeVisible()
  await checkAccessibility(page)
  await expect
    .poll(async () => floeJson<Operation>('operation', 'show', operationId), { timeout: 20_000 })
    .toMatchObject({ state: 'failed', fault: { code: 'host.revoked', message: 'host "second" was revoked' } })
  await page.goto(`${process.env.FLOE_E2E_URL}/operations/${operationId}`)
  await expect(page.getByText('host "second" was revoked').first()).toBeVisible()

  await page.goto(`${process.env.FLOE_E2E_URL}/instances/on-second/flashback`)
  await expect(page.getByText('Whether on-second runs is unknown')).toBeVisible()

  // its agent runs again, and is not believed
  expect((await second.run('./floe agent start')).status).toBe(0)
  expect(await hostNamed('second')).toMatchObject({ state: 'unknown', instances: 1 })
  await page.goto(`${process.env.FLOE_E2E_URL}/hosts/second`)
  await page.getByRole('button', { name: 'Enrol again' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Get a token' }).click()
  const again = (await page.getByTestId('enrol-command').innerText()).trim()
  expect((await second.enrol(again)).status).toBe(0)
  await expect(page.getByText('second is enrolled')).toBeVisible({ timeout: 30_000 })
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()
  await expect(page.getByText('online', { exact: true })).toBeVisible({ timeout: 30_000 })
  const instances = page.getByRole('table', instancesOfHost)
  await expect(instances.getByRole('row', { name: /on-second/ }).getByText('running')).toBeVisible()
})

test('the same by the command line: delete what it holds, revoke, remove', async () => {
  await floe('instance', 'delete', 'on-second', '--confirm', 'on-second')
  await expect(floe('host', 'remove', 'second', '--confirm', 'second')).rejects.toThrow(/Revoke it first/)
  await expect(floe('host', 'revoke', 'second', '--confirm', 'first')).rejects.toThrow(/is not the name/)
  expect(await floeJson('host', 'revoke', 'second', '--confirm', 'second')).toMatchObject({ name: 'second' })
  expect(await floeJson('host', 'remove', 'second', '--confirm', 'second')).toMatchObject({
    name: 'second',
    instances: 0,
  })
  expect(await hostNamed('second')).toBeUndefined()
  const [own] = await floeJson<Host[]>('host', 'list')
  await expect(floe('host', 'revoke', own?.name as string, '--confirm', own?.name as string)).rejects.toThrow(
    /own machine/,
  )
})
