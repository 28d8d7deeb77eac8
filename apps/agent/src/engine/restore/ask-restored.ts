import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { confined } from '../../host/confined'
import { engineEnvironment } from '../../host/run-command'
import { RESTORED_PORT, type RestoredEngine } from './restored-engine'

/** Superusers that a backup may be asked as: Floe's own, and the one that initdb makes. */
const ROLES = ['floe', 'postgres'] as const
const ASK_MS = 300_000
/** Of a table with 1,600 columns, and labels of its enums. */
const ANSWER_MAX_BYTES = 8 * 1024 * 1024

/** A session of a restored engine: it is asked by psql and as the instance's user, because what answers is a stranger. */
export type RestoredSession = { engine: RestoredEngine; database: string; role: string }

/** How values are written by one engine and read by the other. */
export const dataFormat = {
  DateStyle: 'ISO',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  bytea_output: 'hex',
  extra_float_digits: '3',
  lc_monetary: 'C',
  xmloption: 'content',
} as const

/** Over these no setting of a database or a role of the backup counts. */
const sessionSettings = {
  session_preload_libraries: '',
  local_preload_libraries: '',
  event_triggers: 'off',
  search_path: 'pg_catalog',
  row_security: 'off',
  statement_timeout: '0',
  transaction_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
  ...dataFormat,
}

export function spawnPsql({ engine, database, role }: RestoredSession, args: readonly string[]) {
  const [file, ...words] = confined(engine.user, [
    join(engine.prefix, 'bin', 'psql'),
    ...['-XAtqw', '-v', 'ON_ERROR_STOP=1', ...args],
  ])
  return spawn(file, words, {
    cwd: '/',
    env: {
      ...engineEnvironment,
      PGHOST: engine.socketDirectory,
      PGPORT: RESTORED_PORT,
      PGUSER: role,
      PGDATABASE: database,
      PGCLIENTENCODING: 'UTF8',
      PGAPPNAME: 'floe restore',
      PGCONNECT_TIMEOUT: '30',
      PGSSLMODE: 'disable',
      PGGSSENCMODE: 'disable',
      PGOPTIONS: Object.entries(sessionSettings)
        .map(([name, value]) => `-c ${name}=${value}`)
        .join(' '),
    },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
}

/** psql with a script and its variables, to its end. Throws the signal's reason. */
export function askRestored(
  session: RestoredSession,
  script: string,
  variables: Record<string, string>,
  signal: AbortSignal,
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawnPsql(
      session,
      Object.entries(variables).flatMap(([name, value]) => ['-v', `${name}=${value}`]),
    )
    const kill = () => void child.kill('SIGKILL')
    const timer = setTimeout(kill, ASK_MS)
    signal.addEventListener('abort', kill, { once: true })
    if (signal.aborted) kill()
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => {
        if (said[name].length < ANSWER_MAX_BYTES) said[name] += text
        else kill()
      })
    child.stdin.on('error', () => {})
    child.stdin.end(script)
    const over = (status: number | null, error?: Error) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', kill)
      if (signal.aborted) reject(signal.reason)
      else if (error) reject(error)
      else resolve({ status, ...said })
    }
    child.once('error', (error) => over(null, error))
    child.once('close', (status) => over(status))
  })
}

/** Opens a session as the first of the roles that may; throws where there is none, or no such database. */
export async function openRestored(
  engine: RestoredEngine,
  database: string,
  signal: AbortSignal,
): Promise<RestoredSession> {
  let said = ''
  for (const role of ROLES) {
    const session = { engine, database, role }
    const r = await askRestored(
      session,
      'select rolsuper from pg_roles where rolname = current_user;',
      {},
      signal,
    )
    if (r.status === 0 && r.stdout.trim() === 't') return session
    said = /FATAL:\s+(.{1,500})/.exec(r.stderr)?.[1] ?? ''
    if (/^database ".*" does not exist/.test(said))
      throw fault('restore.no_database', `database "${database}" did not exist at that moment`)
  }
  throw fault('restore.no_role', 'the restored engine lets nobody in', {
    detail: `It was asked as ${ROLES.map((role) => `"${role}"`).join(' and ')}.${said ? ` It said: ${said}.` : ''}`,
    hint: 'The backup must hold one of these roles, as a superuser that may log in.',
  })
}
