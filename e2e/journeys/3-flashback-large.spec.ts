import { expect, test } from '@playwright/test'
import { floeJson } from '../fixtures/floe-command'
import { createInstance, restInstances, sql } from '../fixtures/instance'
import { signIn } from '../fixtures/owner'

test.afterAll(restInstances)

/** Of four rows one has a value in TOAST: about half of the bytes of 1 GB. */
const rows = 740_000
const documentsSql = `CREATE TABLE documents (id int8 PRIMARY KEY, n int8, label text, body text STORAGE EXTERNAL);
  INSERT INTO documents
  SELECT i, 0, repeat(md5(i::text), 6),
         CASE WHEN i % 4 = 0 THEN repeat(md5(i::text), 120) ELSE repeat(md5(i::text), 8) END
  FROM generate_series(1, ${rows}) i`

/** What a person waits at most, from rows that are gone to rows that are back. */
const SECONDS_MOST = 60

// It takes minutes, most of them to make the table. Its seconds are printed, each step's for itself.
if (process.env.FLOE_TEST_LONG)
  test('wrong rows of a table of 1 GB are back after at most six presses', async ({ page }) => {
    test.setTimeout(900_000)
    const archive = await createInstance('archive')
    await floeJson(
      ...['setting', 'set', 'archive', 'polar_enable_flashback_log=on', 'polar_enable_fast_recovery_area=on'],
      ...['polar_flashback_log_max_size=8GB', 'max_wal_size=4GB', 'shared_buffers=1GB'],
    )
    await floeJson('instance', 'restart', 'archive')
    const run = (statement: string) => sql(archive.connectionString, statement)
    const content = () => run('SELECT count(*), sum(hashtextextended(d::text, 0)) FROM documents d')
    await run(documentsSql)
    await run('CHECKPOINT')
    expect(Number(await run(`SELECT pg_table_size('documents')`))).toBeGreaterThan(1_000_000_000)
    const before = await content()
    await run(`DELETE FROM documents WHERE id % 100 = 0`)
    await run(`UPDATE documents SET n = 1 WHERE id % 100 = 50`)

    await signIn(page)
    await page.goto(`${process.env.FLOE_E2E_URL}/instances/archive/flashback`)
    const card = page.getByRole('region', { name: 'Flash back a table' })
    const dialog = page.getByRole('dialog')
    const deleted = rows / 100
    const began = performance.now()
    let last = began
    const steps: string[] = []
    const step = (what: string) => {
      const now = performance.now()
      steps.push(`${what} ${((now - last) / 1000).toFixed(1)} s`)
      last = now
    }
    const patience = { timeout: 300_000 }
    page.setDefaultTimeout(patience.timeout)
    let presses = 0
    const press = async (target: ReturnType<typeof card.getByRole>) => {
      await target.click(patience)
      presses += 1
    }
    // one press for the table and the moment
    await press(
      card.getByRole('button', {
        name: new RegExp(`^public\\.documents ${deleted.toLocaleString('en')} rows were deleted`),
      }),
    )
    step('chosen')
    await press(card.getByRole('button', { name: 'Preview', exact: true }))
    await expect(card.getByText(/Since then: 7,400 rows removed/)).toBeVisible(patience)
    step('previewed')
    await press(card.getByRole('button', { name: 'Flash back', exact: true }))
    await expect(card.getByText(/is in public\.polar_flashback_\d+ \(740,000 rows/)).toBeVisible(patience)
    step('flashed back')
    await press(card.getByRole('button', { name: 'Merge…' }))
    await press(dialog.getByRole('button', { name: 'Count the changes' }))
    await expect(dialog.getByText('Counted in a transaction that was rolled back')).toBeVisible(patience)
    step('counted')
    await press(dialog.getByRole('button', { name: 'Merge', exact: true }))
    await expect(
      dialog.getByText(/7,400 rows inserted, 7,400 rows restored in public\.documents/),
    ).toBeVisible(patience)
    step('merged')
    const seconds = (performance.now() - began) / 1000
    process.stdout.write(
      `a table of 1 GB: ${seconds.toFixed(1)} s, ${presses} presses (${steps.join(', ')})\n`,
    )
    expect(await content()).toBe(before)
    expect(presses).toBeLessThanOrEqual(6)
    expect(seconds).toBeLessThan(SECONDS_MOST)
  })
