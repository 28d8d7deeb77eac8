import { existsSync } from 'node:fs'
import { defineConfig } from '@playwright/test'
import { takeOwnInstallation } from './fixtures/installation'

takeOwnInstallation()

// Debian's Chromium where Playwright's own cannot be downloaded
const chromium = [
  process.env.PLAYWRIGHT_CHROMIUM_PATH,
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
].find((path) => path !== undefined && existsSync(path))

/**
 * The journeys of product.md against private installations that `fixtures/installation.ts` brings up with `./floe up`, one
 * for each worker. A file's journeys build on each other, so they run in order and in one worker; no file needs another.
 */
export default defineConfig({
  testDir: './journeys',
  outputDir: './results',
  fullyParallel: false,
  workers: Number(process.env.FLOE_JOURNEY_WORKERS ?? 1),
  timeout: 180_000,
  // patience, never a claim: beside other suites a page takes as long as its machine does
  expect: { timeout: 30_000 },
  reporter: [['list'], ['json', { outputFile: process.env.FLOE_JOURNEY_REPORT ?? './results/report.json' }]],
  globalSetup: './fixtures/installation.ts',
  use: {
    // so that what is waited for in vain is named before the journey's own time is over
    actionTimeout: 60_000,
    navigationTimeout: 60_000,
    // recording takes much processor time
    trace: process.env.FLOE_JOURNEY_TRACE === undefined ? 'off' : 'retain-on-failure',
    screenshot: 'only-on-failure',
    video: 'off',
    launchOptions: { executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage'] },
    viewport: { width: 1280, height: 860 },
    // a spinner has the page drawn at every frame, which takes a tenth of a processor while a step is waited for
    contextOptions: { reducedMotion: 'reduce' },
  },
})
