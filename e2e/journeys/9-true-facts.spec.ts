import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { expect, type Page, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floe, floeJson } from '../fixtures/floe-command'
import { restInstances } from '../fixtures/instance'
import { signIn } from '../fixtures/owner'

test.afterAll(restInstances)

const names = async () => (await floeJson<{ name: string }[]>('instance', 'list')).map((i) => i.name)

/** Takes every port that the host has left for instances; the answer gives them back. */
async function holdInstancePorts(): Promise<() => Promise<void>> {
  const config = readFileSync(join(process.env.FLOE_HOME as string, 'config.json'), 'utf8')
  const { from, to } = (JSON.parse(config) as { instancePorts: { from: number; to: number } }).instancePorts
  const held: Server[] = []
  for (let port = from; port <= to; port++)
    await new Promise<void>((resolve) => {
      // whoever still looks for an instance here is sent away: a server with a guest does not close
      const server = createServer((guest) => guest.destroy())
      // an instance has it
      server.once('error', () => resolve())
      server.listen(port, () => {
        held.push(server)
        resolve()
      })
    })
  return async () => {
    await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))))
  }
}

/** Pictures of what is on the screen, light and dark, wide and narrow. */
async function picture(page: Page, what: string) {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1280, 390]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 860 })
      await page.screenshot({
        path: test.info().outputPath(`${what}-${colorScheme}-${width}.png`),
        fullPage: true,
      })
    }
  await page.setViewportSize({ width: 1280, height: 860 })
}

test('a creation that fails gives its name back and its form, and is tried again with the mistake put right', async ({
  page,
}) => {
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/new`)
  await page.getByLabel('Name').fill('mended')
  await page.getByText('Advanced: settings').click()
  await page.getByRole('button', { name: 'Add a setting' }).click()
  const setting = page.getByLabel('Setting', { exact: true })
  const value = page.getByLabel('Value', { exact: true })
  const create = page.getByRole('button', { name: 'Create instance' })

  // what Floe sets itself is refused beside the line, in the words of Settings, and nothing begins
  await setting.fill('port')
  await value.fill('3000')
  await create.click()
  await expect(page.getByText('setting "port" is set by Floe')).toBeVisible()
  await checkAccessibility(page)
  await picture(page, 'refused')
  expect(await names()).not.toContain('mended')

  // and so is what only the engine can tell
  await setting.fill('shared_bufers')
  await value.fill('10 apples')
  await create.click()
  await expect(page.getByText('setting "shared_bufers" does not exist')).toBeVisible({ timeout: 30_000 })
  expect(await names()).not.toContain('mended')

  // what no check can find out: when it is made, the host has no port left
  await setting.fill('work_mem')
  await value.fill('8MB')
  const release = await holdInstancePorts()
  await create.click()
  const again = page.getByRole('button', { name: 'Edit and try again' })
  await expect(again).toBeVisible({ timeout: 60_000 })
  await checkAccessibility(page)
  await picture(page, 'failed')
  expect(await names()).not.toContain('mended')

  // its operation offers the same, and the same again only after that
  await page.getByRole('link', { name: 'Open the operation' }).first().click()
  await expect(page.getByRole('button', { name: 'Retry' })).toBeVisible()
  await picture(page, 'failed-operation')
  await page.getByRole('link', { name: 'Edit and try again' }).click()
  await expect(page.getByLabel('Name')).toHaveValue('mended')
  await expect(setting).toHaveValue('work_mem')
  await expect(value).toHaveValue('8MB')
  await picture(page, 'again')
  await release()
  await create.click()
  await expect(page.getByText('mended is running')).toBeVisible({ timeout: 60_000 })
  expect(await names()).toContain('mended')
  await floe('instance', 'delete', 'mended', '--confirm', 'mended')
})

test('the command line refuses and frees a name the same way', async () => {
  const message = (args: string[]) => floe('instance', 'create', 'typed', ...args).then(() => '', String)
  expect(await message(['--set', 'port=3000'])).toContain('setting "port" is set by Floe')
  expect(await message(['--set', 'shared_bufers=1GB'])).toContain('setting "shared_bufers" does not exist')
  const release = await holdInstancePorts()
  try {
    expect(await message([])).toContain('did not create the instance')
  } finally {
    await release()
  }
  expect(await names()).not.toContain('typed')
  await floe('instance', 'create', 'typed')
  await floe('instance', 'delete', 'typed', '--confirm', 'typed')
})

test('an instance that is protected from deletion is deleted by nobody, until that is turned off', async ({
  page,
}) => {
  await floe('instance', 'create', 'treasure')
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/treasure/danger-zone`)
  await page.getByRole('button', { name: 'Turn on', exact: true }).click()
  await expect(page.getByText('Deletion protection is on')).toBeVisible()
  await expect(page.getByRole('button', { name: 'Delete instance' })).toBeDisabled()
  await checkAccessibility(page)
  await picture(page, 'protected-from-deletion')
  const remove = () => floe('instance', 'delete', 'treasure', '--confirm', 'treasure')
  expect(await remove().then(() => '', String)).toContain('instance "treasure" has deletion protection')
  expect(await floe('instance', 'deletion-protection', 'treasure')).toContain('is on')
  await page.getByRole('button', { name: 'Turn off', exact: true }).click()
  await expect(page.getByText('Deletion protection is off')).toBeVisible()
  await expect(page.getByRole('button', { name: 'Delete instance' })).toBeEnabled()
  await remove()
  expect(await names()).not.toContain('treasure')
})

test('an address of what does not exist says so at once, and where to go', async ({ page }) => {
  await signIn(page)
  const unknown = randomUUID()
  for (const [path, words, list] of [
    ['/hosts/nope', 'Host "nope" does not exist', 'All hosts'],
    ['/hosts/no%20host', 'Host "no host" does not exist', 'All hosts'],
    [`/operations/${unknown}`, `Operation "${unknown}" does not exist`, 'All operations'],
    ['/operations/nonsense', 'Operation "nonsense" does not exist', 'All operations'],
    ['/instances/nope', 'Instance "nope" does not exist', 'All instances'],
    [`/instances/${unknown}`, `Instance "${unknown}" does not exist`, 'All instances'],
  ] as const) {
    await page.goto(`${process.env.FLOE_E2E_URL}${path}`)
    await expect(page.getByText(words), path).toBeVisible({ timeout: 4_000 })
    await expect(page.getByRole('link', { name: list })).toBeVisible()
    await expect(page.locator('[aria-busy="true"]')).toHaveCount(0)
    await checkAccessibility(page)
  }
  await picture(page, 'not-there')
})
