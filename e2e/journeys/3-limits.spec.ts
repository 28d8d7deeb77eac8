import { expect, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floe, floeJson, startProgram } from '../fixtures/floe-command'
import { createInstance, engineProgram, restInstances } from '../fixtures/instance'
import { looksRight } from '../fixtures/looks-right'
import { signIn } from '../fixtures/owner'

test.describe.configure({ mode: 'serial' })
test.afterAll(restInstances)

type Told = {
  limits: Record<string, number | null>
  observed: { driver: string | null; inForce: Record<string, number | null> | null } | null
  history: { reason: string | null; operationId: string }[]
}
const MB = 1024 ** 2
const limit = (...words: string[]) => floeJson<Told>('instance', 'limit', 'limited', ...words)
const toldOf = (name: string) => floeJson<Told>('instance', 'limit', name)

let connectionString: string
test.beforeAll(async () => {
  connectionString = (await createInstance('limited')).connectionString
  const { observed } = await limit()
  test.skip(observed?.driver == null, 'this host has no cgroup that the agent may use')
})

test('an instance gets limits on its page, which shows what is in force, and they are kept with the reason', async ({
  page,
}) => {
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/limited`)
  await page.getByRole('button', { name: 'Change limits' }).click()
  const dialog = page.getByRole('dialog', { name: 'Limits of limited' })
  await dialog.getByLabel('CPU, cores').fill('half')
  await dialog.getByRole('button', { name: 'Change limits' }).click()
  await expect(dialog.getByText('invalid value for limit "CPU": "half"')).toBeVisible()
  await checkAccessibility(page)
  await dialog.getByLabel('CPU, cores').fill('0.5')
  await dialog.getByLabel('Data writes, IOPS').fill('800')
  await dialog.getByLabel('Why').fill('a good neighbour')
  await dialog.getByRole('button', { name: 'Change limits' }).click()
  await expect(dialog).toBeHidden()
  const row = page.getByRole('table', { name: 'Limits', exact: true }).getByRole('row', { name: /^CPU/ })
  await expect(row.getByText('0.5 cores')).toHaveCount(2, { timeout: 30_000 })
  await looksRight(page, 'limits')
})

test('the command line tells the same, and takes one limit away while the other stays', async () => {
  const told = await limit('--cpu', 'none')
  expect(told.limits).toMatchObject({ cpu: null, dataWriteIops: 800 })
  expect(told.history[1]?.reason).toBe('a good neighbour')
  await expect(limit('--memory-high', '2GB', '--memory-max', '1GB')).rejects.toThrow(/must not be above/)
})

test('a change of limits is rolled back from the history, as an ordinary change', async ({ page }) => {
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/limited`)
  await page.getByText('History', { exact: true }).click()
  const history = page.getByRole('table', { name: 'History of limits' })
  // the newest took the limit of processors away
  await history.getByRole('button', { name: 'Roll back' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'Limits of limited' })
  await expect(dialog.getByLabel('CPU, cores')).toHaveValue('0.5')
  await dialog.getByRole('button', { name: 'Change limits' }).click()
  await expect(dialog).toBeHidden()
  await expect.poll(async () => (await toldOf('limited')).limits.cpu, { timeout: 30_000 }).toBe(0.5)
})

test('a change that was ordered is in force within 2 s, as the kernel tells it', async () => {
  const took: number[] = []
  // a busy machine may take its time once
  for (const cpu of ['0.3', '0.4', '0.6']) {
    const { observed, history } = await limit('--cpu', cpu)
    expect(observed?.inForce?.cpu).toBe(Number(cpu))
    const { createdAt, endedAt } = await floeJson<{ createdAt: number; endedAt: number }>(
      ...['operation', 'show', history[0]?.operationId as string],
    )
    took.push(endedAt - createdAt)
  }
  test.info().annotations.push({ type: 'figure', description: `limit to in force ${took.join(', ')} ms` })
  expect(Math.min(...took)).toBeLessThan(2_000)
  await limit('--cpu', 'none')
})

test('memory near its limit is an incident before anything is killed, and is over when a session ends', async ({
  page,
}) => {
  const held = async () => {
    const lines = await floe(
      ...['telemetry', 'history', 'limited', '--minutes', '1', '--metrics', 'memory_held', '--json'],
    )
    const last = JSON.parse(lines.trim().split('\n').at(-1) ?? 'null') as {
      values: { memory_held: number | null }
    } | null
    return last?.values.memory_held ?? 0
  }
  const session = startProgram(engineProgram('psql'), [
    ...['-Xqc', `select length(set_config('floe.held', repeat('x', ${200 * MB}), false))`],
    ...['-c', 'select pg_sleep(600)', connectionString],
  ])
  try {
    // while the value is made it is held twice: what stays is what counts
    let before = 0
    const steady = async () => {
      const now = await held()
      const change = Math.abs(now - before)
      before = now
      return now > 180 * MB && change < 2 * MB
    }
    await expect.poll(steady, { timeout: 60_000, intervals: [3_000] }).toBe(true)
    await limit('--memory-high', `${Math.round((await held()) / 0.95 / MB)}MB`)
    await signIn(page)
    await page.goto(`${process.env.FLOE_E2E_URL}/incidents`)
    const title = 'memory of instance "limited" is near its limit'
    const row = page.getByRole('listitem').filter({ hasText: title })
    await expect(row).toBeVisible({ timeout: 30_000 })
    await page.goto(`${process.env.FLOE_E2E_URL}/instances/limited`)
    await expect(page.getByText('Memory is near the limit')).toBeVisible()
    const told = await floe('instance', 'limit', 'limited')
    expect(told).toContain('near the limit')
    expect(told).not.toContain('killed')
    await session.stop()
    await page.goto(`${process.env.FLOE_E2E_URL}/incidents`)
    await expect(row).toBeHidden({ timeout: 30_000 })
  } finally {
    await session.stop()
    await limit('--memory-high', 'none')
  }
})

test('a process that the kernel kills at the memory limit is an incident, and the card tells which it was', async ({
  page,
}) => {
  await limit('--memory-max', '600MB')
  const held = `select length(set_config('floe.held', repeat('x', ${400 * MB}), false))`
  const session = startProgram(engineProgram('psql'), ['-Xqc', held, connectionString])
  try {
    await signIn(page)
    await page.goto(`${process.env.FLOE_E2E_URL}/incidents`)
    const title = 'the kernel killed a process of instance "limited" for want of memory'
    const incident = page.getByRole('listitem').filter({ hasText: title })
    await expect(incident).toBeVisible({ timeout: 60_000 })
    await expect(incident).toContainText('--memory-max SIZE')
    await looksRight(page, 'memory-kill')
    await page.goto(`${process.env.FLOE_E2E_URL}/instances/limited`)
    await expect(page.getByText(/^Last killed/)).toContainText('PostgreSQL')
    expect(await floe('instance', 'limit', 'limited')).toMatch(/last kill .*sessions/)
  } finally {
    await session.stop()
    await limit('--memory-max', 'none')
  }
})

test('an instance is created with limits, which are in force from its first start on', async ({ page }) => {
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/new`)
  await page.getByLabel('Name').fill('limited-at-birth')
  await page.getByText('Advanced: limits').click()
  const high = page.getByLabel('Memory, high, bytes')
  await high.fill('2GB')
  await page.getByLabel('Memory, max, bytes').fill('1GB')
  const cpu = page.getByLabel('CPU, cores')
  await cpu.fill('5000')
  await expect(page.getByText('over-committed')).toBeVisible()
  await cpu.fill('0.75')
  const create = page.getByRole('button', { name: 'Create instance' })
  await create.click()
  await expect(page.getByText(/must not be above/)).toBeVisible()
  await looksRight(page, 'creation')
  await high.fill('')
  await create.click()
  await expect(page.getByText('Set its limits')).toBeVisible({ timeout: 30_000 })
  await expect
    .poll(async () => (await toldOf('limited-at-birth').catch(() => null))?.observed?.inForce, {
      timeout: 60_000,
    })
    .toMatchObject({ cpu: 0.75, memoryMax: 1024 ** 3 })
})
