import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { filesToRun } from './quick-files'
import type { RepeatableRun } from './second-try'
import { type Counts, none, runInCheckout, type Suite, type SuiteContext } from './suite'
import { judged, type PlaywrightReport, readPlaywright, settle } from './test-files'

const browsers = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium']

/** A Chromium to drive: the one named, the distribution's, or Playwright's own download. False when none can be had. */
async function ensureBrowser(context: SuiteContext): Promise<boolean> {
  const named = process.env.PLAYWRIGHT_CHROMIUM_PATH
  if (named !== undefined && existsSync(named)) return true
  if (browsers.some((path) => existsSync(path))) return true
  if ((await context.packages('chromium-headless-shell')) || (await context.packages('chromium')))
    return browsers.some((path) => existsSync(path))
  const { status } = await runInCheckout(
    context,
    join(checkoutDirectory(), 'node_modules/.bin/playwright'),
    ['install', 'chromium-headless-shell'],
    { env: { PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: undefined } },
  )
  return status === 0
}

/** Runs Playwright on private installations of its own. What a failure leaves behind goes to `output`. */
async function playwright(
  context: Pick<SuiteContext, 'logFile' | 'more'>,
  output: string,
  { traced }: { traced: boolean },
): Promise<RepeatableRun> {
  const scratch = mkdtempSync(join(tmpdir(), 'floe-journeys-'))
  const report = join(scratch, 'report.json')
  const checkout = checkoutDirectory()
  try {
    const { status } = await runInCheckout(
      context,
      join(checkout, 'node_modules/.bin/playwright'),
      ['test', `--output=${output}`, ...context.more],
      {
        cwd: join(checkout, 'e2e'),
        env: {
          FLOE_JOURNEY_REPORT: report,
          // files that are named, also for a second try, need one installation
          ...(context.more.length > 0 ? { FLOE_JOURNEY_WORKERS: '1' } : {}),
          ...(traced ? { FLOE_JOURNEY_TRACE: '1' } : {}),
          FLOE_LOG: undefined,
          FLOE_STARTED: undefined,
          NO_COLOR: '1',
          FORCE_COLOR: undefined,
        },
      },
    )
    const run = existsSync(report)
      ? readPlaywright(JSON.parse(readFileSync(report, 'utf8')) as PlaywrightReport)
      : { files: [], faults: ['Playwright wrote no report'] }
    return {
      ...judged(run, status, checkout),
      again: (file) =>
        // what the first failure left stays there
        playwright({ ...context, more: [basename(file)] }, 'results/second-try', { traced: true }),
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function journeys(context: SuiteContext): Promise<Counts> {
  await context.enginePrefix()
  if (!(await ensureBrowser(context))) {
    context.log('no Chromium: it is not installed and cannot be installed from here')
    return { ...none, failed: 1 }
  }
  const { more } = filesToRun(context, 'journeys')
  return settle(context, [await playwright({ ...context, more }, 'results', { traced: false })])
}

export const journeysSuite: Suite = {
  name: 'journeys',
  about: 'the product’s journeys in a real browser, against a private installation',
  needs: 'own',
  run: journeys,
}
