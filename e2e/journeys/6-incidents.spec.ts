import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, type Page, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floe, floeJson } from '../fixtures/floe-command'
import { breakConfiguration, createInstance, restInstances } from '../fixtures/instance'
import { owner, signIn } from '../fixtures/owner'

test.afterAll(restInstances)

type Incident = {
  incidentId: string
  title: string
  acknowledgedByName: string | null
  closedBecause: string | null
}
const title = 'instance "fallen" crashed'

/** The page must not be wider than the window: what is wide scrolls by itself. */
const widerThanWindow = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)

test('a crash opens an incident: the bell tells it live, somebody takes note of it, and a start resolves it', async ({
  page,
}) => {
  const instance = await createInstance('fallen')
  await signIn(page)
  const bell = page.getByRole('button', { name: /incident/i })
  await expect(bell).toBeVisible()
  const pid = Number(readFileSync(join(instance.directory, 'pgdata/postmaster.pid'), 'utf8').split('\n')[0])
  // what cannot start stays down, although a crashed instance is started by itself
  const { mend } = breakConfiguration(instance.directory)
  process.kill(pid, 'SIGKILL')

  await expect(page.getByRole('button', { name: /\d+ open incident/ })).toBeVisible({ timeout: 30_000 })
  // by keyboard: the bell opens, and its way to the page is in reach
  await bell.focus()
  await page.keyboard.press('Enter')
  const menu = page.getByRole('dialog', { name: 'Incidents' })
  await expect(menu.getByRole('link', { name: title })).toBeVisible()
  await checkAccessibility(page)
  await page.keyboard.press('Escape')
  await expect(bell).toBeFocused()
  await page.keyboard.press('Enter')
  await menu.getByRole('link', { name: /incidents$/ }).focus()
  await page.keyboard.press('Enter')

  await expect(page.getByRole('heading', { name: 'Incidents', level: 1 })).toBeVisible()
  const row = page.getByRole('listitem').filter({ hasText: title })
  await expect(row).toContainText('critical')
  await expect(row.getByRole('link', { name: 'fallen' })).toHaveAttribute('href', '/instances/fallen')
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1280, 390]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 860 })
      await checkAccessibility(page)
      expect(await widerThanWindow(page)).toBeLessThanOrEqual(0)
      await page.screenshot({ path: test.info().outputPath(`incidents-${colorScheme}-${width}.png`) })
    }
  await page.setViewportSize({ width: 1280, height: 860 })

  await row.getByRole('button', { name: /Acknowledge/ }).click()
  await expect(row).toContainText(`acknowledged by ${owner.name}`)
  const listed = (await floeJson<Incident[]>('incident', 'list')).find((i) => i.title === title)
  expect(listed?.acknowledgedByName).toBe(owner.name)
  const again = await floeJson<{ first: boolean }>('incident', 'acknowledge', listed?.incidentId as string)
  expect(again.first).toBe(false)

  mend()
  await floe('instance', 'start', 'fallen')
  await expect(row).toContainText('resolved', { timeout: 30_000 })
  await expect(row).toContainText('no longer reported as crashed')
  await page.getByLabel('State').selectOption('open')
  await expect(row).toBeHidden()
  expect(await floe('incident', 'show', listed?.incidentId as string)).toContain('resolved')
})
