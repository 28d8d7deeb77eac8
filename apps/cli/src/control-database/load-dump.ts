import { join } from 'node:path'
import { controlDatabaseUrl, fault, type Installation } from '@floe/domain'
import type { PendingRestore } from '../backup/pending-restore'
import { checkoutDirectory, type Home } from '../installation/home'
import type { StepReport } from '../progress/progress'
import { runProgram } from '../run-program'
import { migrate } from '../up/migrations'
import { engineEnvironment } from './control'
import { toolEnvironment } from './external'
import { LOADING, OWNER, SUPERUSER } from './initialise'

/**
 * Loads the dump of a restore beside the control database, brings it to this version, has everything in it decided on by a
 * person before it is acted on, and only then gives it the control database's name. What was in place is kept under another
 * one, the newest such only. Safe to run again after having been killed anywhere.
 */
export async function loadDump(
  home: Home,
  installation: Installation,
  restore: PendingRestore,
  report: StepReport,
): Promise<void> {
  const { name } = installation.controlDatabase
  const loading = { ...installation, controlDatabase: { ...installation.controlDatabase, name: LOADING } }
  if (await isLoaded(installation, restore)) return
  report.now('loading the backup')
  await sql(
    installation,
    `DROP DATABASE IF EXISTS ${LOADING} WITH (FORCE);
CREATE DATABASE ${LOADING} OWNER ${OWNER};
ALTER ROLE ${OWNER} LOGIN;`,
  )
  try {
    // what is in a dump is carried out: by the owner of the tables, who is no superuser
    const { status, tail } = await runProgram(
      join(installation.enginePrefix, 'bin/pg_restore'),
      [
        '--exit-on-error',
        '--single-transaction',
        '--no-owner',
        '--no-privileges',
        ...connection(installation, OWNER, LOADING),
        restore.dumpFile,
      ],
      { cwd: '/', env: engineEnvironment(), onLine: (line) => report.log(line) },
    )
    if (status !== 0)
      throw fault('backup.not_loaded', 'could not load the control database of the backup', {
        detail: tail.slice(-8).join('\n'),
        hint: 'The control database is as it was. Use another backup.',
      })
  } finally {
    await sql(installation, `ALTER ROLE ${OWNER} NOLOGIN;`)
  }
  await migrate(home, loading, report)
  await settle(loading, restore)
  // what "up" has just made, on a fresh machine or after a kill between the two names, holds nothing to be kept
  const empty =
    (await sql(installation, `SELECT to_regclass('public._prisma_migrations') IS NULL`, name)) === 't'
  const replaced = `${name}_replaced_`
  const away = empty
    ? `DROP DATABASE ${name} WITH (FORCE);`
    : `SELECT 'ALTER DATABASE ${name} RENAME TO ${replaced}' || to_char(clock_timestamp(), 'YYYYMMDD_HH24MISS') \\gexec`
  await sql(
    installation,
    `${away}
ALTER DATABASE ${LOADING} RENAME TO ${name};
SELECT 'DROP DATABASE ' || quote_ident(datname) || ' WITH (FORCE)' FROM pg_database
 WHERE starts_with(datname, '${replaced}') ORDER BY datname DESC OFFSET 1 \\gexec`,
  )
}

const connection = ({ controlDatabase }: Installation, role: string, database: string): string[] => [
  ...['--host', controlDatabase.socketDirectory, '--port', String(controlDatabase.port)],
  ...['--username', role, '--dbname', database],
]

async function sql(installation: Installation, script: string, database = 'postgres'): Promise<string> {
  const { status, stdout, tail } = await runProgram(
    join(installation.enginePrefix, 'bin/psql'),
    ['-XAtq', '-v', 'ON_ERROR_STOP=1', ...connection(installation, SUPERUSER, database)],
    { cwd: '/', env: engineEnvironment(), input: script },
  )
  if (status === 0) return stdout.trim()
  throw fault('backup.not_loaded', 'could not put the restored control database in place', {
    detail: tail.slice(-8).join('\n'),
    hint: 'Run the same again: it goes on.',
  })
}

/** Whether the control database is the one of this restore already. */
async function isLoaded(installation: Installation, { restoreId }: PendingRestore): Promise<boolean> {
  const { name } = installation.controlDatabase
  const there = await sql(installation, `SELECT to_regclass('public.restored_record') IS NOT NULL`, name)
  if (there !== 't') return false
  return (
    (await sql(
      installation,
      `SELECT EXISTS (SELECT FROM public.restored_record WHERE id = '${restoreId}')`,
      name,
    )) === 't'
  )
}

async function settle(loading: Installation, { restoreId, manifest }: PendingRestore): Promise<void> {
  const { status, tail } = await runProgram(process.execPath, ['tools/settle-restored.mjs'], {
    cwd: join(checkoutDirectory(), 'packages/db'),
    env: {
      ...toolEnvironment(),
      DATABASE_URL: controlDatabaseUrl(loading, SUPERUSER),
      DATABASE_OWNER: OWNER,
    },
    input: JSON.stringify({ restoreId, backupAt: manifest.madeAt }),
  })
  if (status !== 0)
    throw fault('backup.not_loaded', 'could not prepare the restored control database', {
      detail: tail.slice(-8).join('\n'),
      hint: 'The control database is as it was. Run the same again.',
    })
}
