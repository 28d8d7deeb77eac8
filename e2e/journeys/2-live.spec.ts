import { readFileSync } from 'node:fs'
import { expect, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { runProgram } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance, engineProgram, restInstances, sql } from '../fixtures/instance'
import { openInstance, shownNumber } from '../fixtures/instance-page'
import { startLoad } from '../fixtures/load'
import { signIn } from '../fixtures/owner'

test.describe.configure({ mode: 'serial' })

let live: CreatedInstance
let load: ReturnType<typeof startLoad>

test.beforeAll(async () => {
  live = await createInstance('live')
  await runProgram(engineProgram('pgbench'), ['-i', '-s', '5', '-q', live.connectionString])
  load = startLoad(live.connectionString)
})
test.afterAll(async () => {
  await load.stop()
})
test.afterAll(restInstances)

test('TPS, WAL, I/O and connections move while a load runs, and are never stale', async ({ page }) => {
  await signIn(page)
  await openInstance(page, 'live')
  // charts are mounted while they are in view, so go down the page as a reader would
  for (const name of ['TPS', 'WAL', 'I/O', 'Connections']) {
    const chart = page.getByRole('figure', { name: new RegExp(`^${name}`) })
    await expect
      .poll(
        async () => {
          const seen = await chart.isVisible()
          if (!seen) await page.mouse.wheel(0, 200)
          return seen
        },
        { message: `the chart ${name} comes into view` },
      )
      .toBe(true)
  }
  await page.keyboard.press('Home')
  await expect.poll(() => shownNumber(page, 'tps'), { timeout: 20_000 }).toBeGreaterThan(10)

  // the page states the age of its newest sample; read it over 20 changes
  const ages = await page.evaluate(async () => {
    const element = document.querySelector('[data-testid="sample-age"]') as HTMLElement
    const seen: number[] = []
    const end = performance.now() + 20_000
    while (performance.now() < end) {
      const at = Number(element.dataset.sampleAt)
      if (at > 0) seen.push(Date.now() - at)
      // a frame of its own for each look would be drawn for nothing
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    return seen
  })
  ages.sort((a, b) => a - b)
  const p95 = ages[Math.floor(ages.length * 0.95)] as number
  test.info().annotations.push({ type: 'figure', description: `telemetry age p95 ${Math.round(p95)} ms` })
  // the figure is the annotation; the guarantee is that a running instance never looks stale
  expect(p95).toBeLessThan(5_000)
  await checkAccessibility(page)
})

test('a checkpoint appears in the table with its reason in words', async ({ page }) => {
  await signIn(page)
  await openInstance(page, 'live')
  await sql(live.connectionString, 'CHECKPOINT')
  const table = page.getByRole('table', { name: 'Checkpoints' })
  await expect(table.getByRole('row').filter({ hasText: 'requested' }).first()).toBeVisible({
    timeout: 20_000,
  })
})

test('a time range chosen by drag or preset is kept in the URL and can be shared', async ({
  page,
  context,
}) => {
  await signIn(page)
  await openInstance(page, 'live')
  await page.getByRole('button', { name: /time range/i }).click()
  await page.getByRole('menuitemradio', { name: /last 15 minutes/i }).click()
  await expect(page).toHaveURL(/range=15m/)
  const chart = page.getByRole('figure', { name: /^TPS/ })
  await expect
    .poll(() => chart.locator('path.recharts-curve').count(), { timeout: 20_000 })
    .toBeGreaterThan(0)
  const box = await chart.locator('.recharts-surface').first().boundingBox()
  if (!box) throw new Error('the chart has no size')
  await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.9, box.y + box.height / 2, { steps: 8 })
  await page.mouse.up()
  await expect(page).toHaveURL(/from=\d+.*to=\d+/)
  const shared = await context.newPage()
  await shared.goto(page.url())
  await expect(shared.getByRole('figure', { name: /^TPS/ })).toBeVisible()
})

test('the shown range is exported as CSV and as PNG', async ({ page }) => {
  await signIn(page)
  await openInstance(page, 'live')
  await expect.poll(() => shownNumber(page, 'tps'), { timeout: 20_000 }).toBeGreaterThan(10)
  const csv = page.waitForEvent('download')
  await page.getByRole('button', { name: /export/i }).click()
  await page.getByRole('menuitem', { name: /csv/i }).click()
  const text = readFileSync(await (await csv).path(), 'utf8')
  const [header, ...rows] = text.trim().split('\n')
  expect(header).toMatch(/^time,.*tps/)
  expect(rows.length).toBeGreaterThan(5)
  const png = page.waitForEvent('download')
  await page.getByRole('button', { name: /export/i }).click()
  await page.getByRole('menuitem', { name: /png/i }).click()
  const image = readFileSync(await (await png).path())
  expect(image.subarray(1, 4).toString()).toBe('PNG')
  expect(image.length).toBeGreaterThan(5_000)
})
