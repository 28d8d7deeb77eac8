import { chmodSync, existsSync, lchownSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fault, type Installation } from '@floe/domain'
import type { EngineUser } from '../installation/engine-user'
import { type Home, readOwned, readSecret, writeWhole } from '../installation/home'
import { runProgram } from '../run-program'
import { controlDataDirectory, controlDirectory, engineEnvironment } from './control'

const managedFile = 'floe.conf'

/** Small, because it holds the console's own rows and shares the host with the instances it is about. */
function settings(installation: Installation): string {
  const lines: Record<string, string> = {
    listen_addresses: "'127.0.0.1'",
    port: String(installation.controlPort),
    unix_socket_directories: `'${installation.socketDirectory}'`,
    max_connections: '80',
    shared_buffers: '64MB',
    maintenance_work_mem: '32MB',
    max_wal_size: '512MB',
    min_wal_size: '64MB',
    wal_compression: 'lz4',
    wal_level: 'minimal',
    max_wal_senders: '0',
    max_logical_replication_workers: '0',
    max_parallel_workers_per_gather: '0',
    jit: 'off',
    autovacuum_naptime: "'15s'",
    log_destination: "'stderr'",
    logging_collector: 'off',
    log_line_prefix: "'%m [%p] %q%u@%d '",
    log_checkpoints: 'off',
    lc_messages: "'C'",
    cluster_name: "'floe control database'",
  }
  const body = Object.entries(lines).map(([name, value]) => `${name} = ${value}`)
  return ['# Written by "./floe up"; changes made here are lost.', ...body, ''].join('\n')
}

/** Only this host: the engine's user through the socket by its own name, the console's role with its password. */
const hostBasedAuthentication = `# Written by "./floe up".
local all all peer
host all all 127.0.0.1/32 scram-sha-256
`

/**
 * Creates the control database's directory unless it is there, and writes its settings. An earlier run that was killed in
 * the middle left only a staging directory, which is begun anew. Answers true when it was created now.
 */
export async function ensureControlDatabase(
  installation: Installation,
  user: EngineUser,
  onLine: (line: string) => void,
): Promise<boolean> {
  const directory = controlDirectory(installation)
  const target = controlDataDirectory(installation)
  const created = !existsSync(join(target, 'PG_VERSION'))
  if (created) {
    const staging = join(directory, 'pgdata.new')
    // passed by the engine's user, changed by us alone: what lies in it cannot be swapped for a link
    mkdirSync(directory, { recursive: true, mode: 0o711 })
    rmSync(staging, { recursive: true, force: true })
    mkdirSync(staging, { mode: 0o700 })
    if (user.switchTo !== null) lchownSync(staging, user.switchTo.uid, user.switchTo.gid)
    const { status, tail } = await runProgram(
      join(installation.enginePrefix, 'bin/initdb'),
      [
        '-D',
        staging,
        '-U',
        user.name,
        '-E',
        'UTF8',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        '--locale=C',
        '--data-checksums',
        '--auth-local=peer',
        '--auth-host=scram-sha-256',
      ],
      { ...user.switchTo, cwd: '/', env: engineEnvironment(), onLine },
    )
    if (status !== 0)
      throw fault('control_database.not_created', 'could not create the control database', {
        detail: tail.join('\n'),
        hint: `Check that "${directory}" can be written by the user "${user.name}" and has free space.`,
      })
    renameSync(staging, target)
  }
  if (user.switchTo !== null) {
    lchownSync(directory, process.getuid?.() ?? 0, process.getgid?.() ?? 0)
    chmodSync(directory, 0o711)
  }
  const main = join(target, 'postgresql.conf')
  const include = `include = '${managedFile}'`
  const text = readOwned(main)
  if (!text.split('\n').includes(include)) writeWhole(main, `${text}\n${include}\n`, 0o600, user.switchTo)
  for (const [name, content] of [
    [managedFile, settings(installation)],
    ['pg_hba.conf', hostBasedAuthentication],
  ] as const)
    writeWhole(join(target, name), content, 0o600, user.switchTo)
  return created
}

/** Makes the console's role and database in the running control database, and sets the role's password to the secret. */
export async function ensureConsoleRole(
  home: Home,
  installation: Installation,
  user: EngineUser,
): Promise<void> {
  const { user: role, name } = installation.controlDatabase
  const password = readSecret(home, 'controlPassword')
  // through standard input, so that no process list shows the password
  const script = `
SELECT 'CREATE ROLE ${role} LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${role}') \\gexec
ALTER ROLE ${role} PASSWORD '${password}';
SELECT 'CREATE DATABASE ${name} OWNER ${role}' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '${name}') \\gexec
`
  const { status, tail } = await runProgram(
    join(installation.enginePrefix, 'bin/psql'),
    [
      '-Xq',
      '-v',
      'ON_ERROR_STOP=1',
      '-h',
      installation.socketDirectory,
      '-p',
      String(installation.controlPort),
      '-U',
      user.name,
      '-d',
      'postgres',
    ],
    { ...user.switchTo, cwd: '/', env: engineEnvironment(), input: script },
  )
  if (status !== 0)
    throw fault('control_database.no_role', 'could not prepare the control database', {
      detail: tail.join('\n'),
    })
}
