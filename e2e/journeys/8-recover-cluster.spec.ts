import { join } from 'node:path'
import { expect, type Page, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floe, floeJson, runProgram, startProgram } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance, engineProgram, restInstances, sql } from '../fixtures/instance'
import { openInstance } from '../fixtures/instance-page'
import { looksRight } from '../fixtures/looks-right'
import { signIn } from '../fixtures/owner'
import { killAll, pidOf } from '../fixtures/processes'
import { rememberFiles, tearPages } from '../fixtures/torn-pages'

test.afterAll(restInstances)

type Protection = { imagesInForce: boolean; sources: { member: string; healthy: boolean }[] }

let primary: CreatedInstance
let standby: CreatedInstance
const names = ['both', 'both-2'] as const

const show = (name: string) =>
  floeJson<CreatedInstance & { postmasterPid: number | null }>('instance', 'show', name)
const states = () => Promise.all(names.map(async (name) => (await show(name)).state))
const onStandby = (statement: string) =>
  sql(primary.connectionString.replace(`:${primary.port}/`, `:${standby.port}/`), statement)
const sums = `select sum(abalance) from pgbench_accounts union all select sum(tbalance) from pgbench_tellers union all
  select sum(bbalance) from pgbench_branches union all select sum(delta) from pgbench_history`
const bookings = () => sql(primary.connectionString, 'select count(*) from pgbench_history').then(Number)

async function createCluster() {
  // little room in the pool, so that pages are written soon; no checkpoint but those that are asked for
  const settings = ['shared_buffers=2MB', 'checkpoint_timeout=1h', 'max_wal_size=4GB']
  primary = await createInstance('both', ...settings.flatMap((s) => ['--set', s]))
  await floe('standby', 'create', 'both', 'both-2')
  standby = await show('both-2')
  const protection = () => floeJson<Protection>('instance', 'protection', 'both')
  await expect
    .poll(async () => (await protection()).sources.map((s) => s.healthy), { timeout: 60_000 })
    .toEqual([true])
  await floe('setting', 'set', 'both', 'full_page_writes=off')
  await expect.poll(async () => (await protection()).imagesInForce, { timeout: 60_000 }).toBe(false)
}

/** One failure of power ends both; no page is torn on both. Answers how many rows were confirmed before. */
async function failPower(): Promise<number> {
  await runProgram(engineProgram('pgbench'), ['-i', '-s', '5', '-q', primary.connectionString])
  await sql(primary.connectionString, 'CHECKPOINT')
  const lsn = await sql(primary.connectionString, 'select pg_current_wal_flush_lsn()')
  await expect
    .poll(() => onStandby(`select pg_last_wal_replay_lsn() >= '${lsn}'`), { timeout: 60_000 })
    .toBe('t')
  await onStandby('CHECKPOINT')
  const directories = [primary, standby].map((i) => join(i.directory, 'pgdata'))
  const before = await Promise.all(directories.map(rememberFiles))
  const load = startProgram(engineProgram('pgbench'), ['-c', '4', '-T', '600', primary.connectionString])
  await expect.poll(bookings, { timeout: 120_000 }).toBeGreaterThan(2_000)
  const confirmed = await bookings()
  const pids = await Promise.all(names.map(async (name) => (await show(name)).postmasterPid as number))
  const agent = pidOf('agent')
  // nobody starts them while their files are what the disks made of them
  process.kill(agent, 'SIGSTOP')
  try {
    await killAll(...pids)
    await load.ended
    for (const [i, directory] of directories.entries()) {
      const torn = await tearPages(directory, before[i] as (typeof before)[0], (block) => block % 2 === i)
      expect(torn).toBeGreaterThan(10)
    }
  } finally {
    process.kill(agent, 'SIGCONT')
  }
  return confirmed
}

async function openDialog(page: Page) {
  await page.getByRole('button', { name: 'Recover cluster' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByText('Recover cluster both')).toBeVisible()
  return dialog
}

// Two engines that are torn at once, and both starts until they give up, take minutes.
if (process.env.FLOE_TEST_LONG)
  test('a cluster whose members one power failure has torn is recovered by a button', async ({ page }) => {
    test.setTimeout(900_000)
    await createCluster()
    const confirmed = await failPower()
    await signIn(page)
    await openInstance(page, 'both')
    // each waits for what only the other has
    await expect(page.getByText(/recovery waits for a page repair source/).first()).toBeVisible({
      timeout: 120_000,
    })
    await looksRight(page, 'waits')
    await page.getByRole('link', { name: 'Replication', exact: true }).click()
    await expect(page.getByText('No member of this cluster runs')).toBeVisible({ timeout: 60_000 })
    await looksRight(page, 'none-runs')
    const dialog = await openDialog(page)
    await checkAccessibility(page)
    for (const [colorScheme, width] of [
      ['dark', 390],
      ['light', 1280],
    ] as const) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 844 })
      await page.screenshot({ path: test.info().outputPath(`dialog-${colorScheme}-${width}.png`) })
    }
    await expect(dialog.getByRole('button', { name: 'Recover cluster' })).toBeDisabled()
    await dialog.getByLabel('Type both to confirm').fill('both')
    // what cannot be a base backup's place, and an archive without one, are said before anything is ordered
    await dialog.getByText('With a base backup').click()
    await dialog.getByLabel('Base backup').fill('backup')
    await expect(dialog.getByRole('button', { name: 'Recover cluster' })).toBeDisabled()
    await dialog.getByLabel('Base backup').fill('')
    await dialog.getByLabel('WAL archive').fill('/srv/wal')
    await expect(dialog.getByText('A WAL archive is of use only with a base backup.')).toBeVisible()
    await page.screenshot({ path: test.info().outputPath('dialog-refused.png') })
    await expect(dialog.getByRole('button', { name: 'Recover cluster' })).toBeDisabled()
    await dialog.getByLabel('WAL archive').fill('')
    await dialog.getByRole('button', { name: 'Recover cluster' }).click()
    await expect(dialog).toBeHidden({ timeout: 30_000 })
    await expect(page.getByText(/^Recover cluster/).first()).toBeVisible()

    await expect.poll(states, { timeout: 300_000 }).toEqual(['running', 'running'])
    await expect(page.getByText('No member of this cluster runs')).toBeHidden({ timeout: 30_000 })
    // every row that was confirmed is there, the books agree, and on the standby, too
    expect(await bookings()).toBeGreaterThanOrEqual(confirmed)
    const books = (await sql(primary.connectionString, sums)).split('\n')
    expect(new Set(books).size).toBe(1)
    await expect.poll(() => onStandby(sums).then((s) => s.split('\n')), { timeout: 60_000 }).toEqual(books)
  })
