import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@playwright/test'
import { checkAccessibility } from '../fixtures/accessibility'
import { floeJson } from '../fixtures/floe-command'
import { type CreatedInstance, createInstance, restInstances, sql } from '../fixtures/instance'
import { signIn } from '../fixtures/owner'

test.describe.configure({ mode: 'serial' })

let archived: CreatedInstance
let room: string
let before: string
const ask = (statement: string) => sql(archived.connectionString, statement)

test.beforeAll(async () => {
  archived = await createInstance('archived')
  room = mkdtempSync(join(tmpdir(), 'floe-journey-'))
  chmodSync(room, 0o777)
  // a base backup, and later on the WAL since, as the instance's own user makes them
  await ask(`SELECT pg_backup_start('journey', true);
    COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; cp -R . ${room}/base; cd ${room}/base; rm -rf postmaster.pid pg_replslot/* pg_wal/*';
    COPY (SELECT replace(encode(convert_to(labelfile, 'utf8'), 'base64'), E'\\n', '') FROM pg_backup_stop(false))
      TO PROGRAM 'base64 -d > ${room}/base/backup_label'`)
  await ask('CREATE TABLE account (id int PRIMARY KEY)')
  await ask('INSERT INTO account SELECT generate_series(1, 1000)')
  before = await ask(
    `SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') FROM pg_sleep(0.1)`,
  )
  await ask('DELETE FROM account')
  await ask('SELECT pg_switch_wal()')
  await ask(`COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; mkdir ${room}/wal; cp pg_wal/0000* ${room}/wal/'`)
})
test.afterAll(() => rmSync(room, { recursive: true, force: true }))
test.afterAll(restInstances)

test('where no window reaches, a table is restored from a base backup and WAL that a person names', async ({
  page,
}) => {
  await signIn(page)
  await page.goto(`${process.env.FLOE_E2E_URL}/instances/archived/flashback`)
  const restore = page.getByRole('button', { name: 'Restore', exact: true })
  // a press before the page's script has come is none
  await expect(async () => {
    if (!(await restore.isVisible()))
      await page.getByRole('button', { name: 'Restore…' }).click({ timeout: 1_000 })
    await expect(restore).toBeDisabled({ timeout: 1_000 })
  }).toPass()
  await page.getByLabel('Database', { exact: true }).fill('postgres')
  await page.getByLabel('Table', { exact: true }).fill('account')
  await expect(page.getByText('It must be a schema and a name, e.g. public.account')).toBeVisible()
  await page.getByLabel('Table', { exact: true }).fill('public.account')
  await page.getByLabel('Time', { exact: true }).fill(before)
  await page.getByLabel('Base backup', { exact: true }).fill(`${room}/base`)
  await page.getByLabel('WAL archive', { exact: true }).fill(`${room}/wal`)
  await checkAccessibility(page)
  await restore.click()
  await expect(page.getByText(/public\.polar_restored_account has 1,000 rows/)).toBeVisible({
    timeout: 60_000,
  })
  await checkAccessibility(page)
  expect(await ask('SELECT count(*) FROM polar_restored_account')).toBe('1000')
  expect(await ask('SELECT count(*) FROM account')).toBe('0')
})

test('the command line has the same verb, and names the nearest moment where the WAL ends before', async () => {
  const restoring = (at: string) =>
    floeJson<{ result: { rows: number } }>(
      'flashback',
      'restore',
      'archived',
      ...['--database', 'postgres', '--table', 'public.account', '--at', at, '--result', 'account_then'],
      ...['--backup', `${room}/base`, '--wal', `${room}/wal`],
    )
  await expect(restoring(new Date().toISOString())).rejects.toThrow(/nearest moment that can be restored is/)
  expect((await restoring(before)).result.rows).toBe(1_000)
})
