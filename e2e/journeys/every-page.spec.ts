import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, type Page, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { checkout, floe } from '../fixtures/floe-command'
import { createInstance } from '../fixtures/instance'
import { signIn } from '../fixtures/owner'

const looks = [
  { name: 'light and wide', colorScheme: 'light', viewport: { width: 1280, height: 860 } },
  { name: 'dark and narrow', colorScheme: 'dark', viewport: { width: 390, height: 844 } },
] as const

/** Pages that differ only in which thing they show are one. */
const kindOf = (path: string) =>
  path
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '{id}')
    .replace(/^\/(instances|hosts|clusters)\/(?!new\b)[^/]+/, '/$1/{name}')

/** Every screen of the console, as `kindOf` names it: what has a route. */
const screens = (() => {
  const routes = join(checkout, 'apps/web/src/app/(console)')
  return readdirSync(routes, { recursive: true, encoding: 'utf8' })
    .filter((file) => /(^|\/)page\.tsx$/.test(file))
    .map((file) =>
      `/${file.replace(/\/?page\.tsx$/, '')}`.replace(/\[\w*Id\]/g, '{id}').replace(/\[\w+\]/g, '{name}'),
    )
})()

/** What the page links to within the console, without queries, as paths. */
async function linksOf(page: Page): Promise<string[]> {
  const hrefs = await page
    .locator('a[href]')
    .evaluateAll((anchors) => anchors.map((a) => (a as HTMLAnchorElement).href))
  const base = new URL(process.env.FLOE_E2E_URL ?? '').origin
  return hrefs
    .filter((href) => href.startsWith(`${base}/`) && !href.includes('/api/'))
    .map((href) => new URL(href).pathname)
}

async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
}

/** Tables whose columns are cut without a visible way to them, or whose actions are out of sight. */
async function cutTables(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll('table')].flatMap((table) => {
      const name = table.getAttribute('aria-label') ?? 'a table without a name'
      let box: HTMLElement | null = table.parentElement
      while (box && getComputedStyle(box).overflowX === 'visible') box = box.parentElement
      if (!box || table.scrollWidth <= box.clientWidth + 1) return []
      const affordance = box.parentElement?.querySelector<HTMLElement>('[data-table-scroll]')
      const said = affordance ? affordance.getBoundingClientRect().height > 0 : false
      const edge = box.getBoundingClientRect().right + 1
      const away = [...table.querySelectorAll('td:last-child button')].some(
        (button) => button.getBoundingClientRect().right > edge,
      )
      return [
        ...(said ? [] : [`${name}: ${table.scrollWidth} px in ${box.clientWidth} px, and nothing says so`]),
        ...(away ? [`${name}: its actions are out of sight`] : []),
      ]
    }),
  )
}

// a cluster of three has the screens that one instance alone lacks
test.beforeAll(async () => {
  test.setTimeout(180_000)
  await createInstance('visited')
  await floe('standby', 'create', 'visited', 'visited-2')
  await floe('standby', 'create', 'visited', 'visited-3')
})

for (const look of looks)
  test(`every page that can be reached is sound, ${look.name}`, async ({ browser }) => {
    test.setTimeout(480_000)
    const context = await browser.newContext({ colorScheme: look.colorScheme, viewport: look.viewport })
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`))
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(`${page.url()}: ${message.text()}`)
    })
    await signIn(page)
    const seen = new Set<string>()
    const open = ['/instances', '/instances/visited', '/account']
    for (let path = open.shift(); path !== undefined; path = open.shift()) {
      if (seen.has(kindOf(path)) || kindOf(path) === '/sign-in') continue
      seen.add(kindOf(path))
      await test.step(path, async () => {
        await page.goto(`${process.env.FLOE_E2E_URL}${path}`)
        await expect(page.getByRole('heading', { level: 1 }).first()).toBeVisible()
        await expect(page.locator('[aria-busy="true"]')).toHaveCount(0)
        // shapes of what is being loaded have neither its links nor its width
        await expect(page.locator('[role="status"][aria-label]')).toHaveCount(0)
        await checkAccessibility(page)
        expect(await overflow(page), `${path} is wider than the window`).toBeLessThanOrEqual(0)
        expect(await cutTables(page), path).toEqual([])
        open.push(...(await linksOf(page)))
      })
    }
    expect(screens.length).toBeGreaterThan(0)
    expect([...seen], 'a screen that no link leads to').toEqual(expect.arrayContaining(screens))
    expect(complaints).toEqual([])
    await context.close()
  })
