import {
  chmodSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmdirSync,
  rmSync,
} from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { controlDatabaseRoles, fault, type Installation } from '@floe/domain'
import { readRegularFile } from '@floe/host/regular-file'
import { replaceFile } from '@floe/host/replace-file'
import { isRoot, type OsUser } from '../installation/os-user'
import { changeTree, writeOwned } from '../installation/own-files'
import { runProgram } from '../run-program'
import {
  controlDataDirectory,
  controlDirectory,
  controlUser,
  engineEnvironment,
  stopControlDatabase,
} from './control'

const managedFile = 'floe.conf'

/** Made by initdb. The launcher is this role, and the programs of the control database's own user. */
export const SUPERUSER = 'floe'
/** Owns the console's tables; nobody connects as it, but the launcher while it loads a backup. */
export const OWNER = 'console'
/** The database that a backup is loaded into. */
export const LOADING = 'console_loading'
const roleOf = controlDatabaseRoles

const CONNECTIONS = 80
const RESERVED_CONNECTIONS = 5
/** Neither process can keep the other one out, nor both of them the launcher. */
export const connectionLimits = { [roleOf.web]: 40, [roleOf.controller]: 30 }

/** Small, because it holds the console's own rows and shares the host with the instances it is about. */
function settings(installation: Installation): string {
  const lines: Record<string, string> = {
    listen_addresses: "''",
    port: String(installation.controlDatabase.port),
    unix_socket_directories: `'${installation.controlDatabase.socketDirectory}'`,
    max_connections: String(CONNECTIONS),
    superuser_reserved_connections: String(RESERVED_CONNECTIONS),
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

/** Who may connect: by the Unix socket alone, and each OS user as the one role that it is mapped to. */
const hostBasedAuthentication = ({ controlDatabase: { name } }: Installation) => `# Written by "./floe up".
local ${name} ${Object.values(roleOf).join(',')} peer map=floe
local ${LOADING} ${OWNER} peer map=floe
local all ${SUPERUSER} peer map=floe
local all all reject
host all all all reject
`

/** Which OS user is which role. Without root they are all one user. */
function userMap({ users }: Installation): string {
  const us = userInfo().username
  const lines = [
    [us, SUPERUSER],
    // may log in only while a backup is loaded
    [us, OWNER],
    [users?.controlDatabase ?? us, SUPERUSER],
    [users?.web ?? us, roleOf.web],
    [users?.controller ?? us, roleOf.controller],
  ].map(([user, role]) => `floe "${user}" ${role}`)
  return ['# Written by "./floe up".', ...new Set(lines), ''].join('\n')
}

/**
 * Creates the control database's directory unless it is there, and writes its settings. An earlier run that was killed
 * in the middle left only a staging directory, which is replaced. Leaves it stopped where something changed.
 */
export async function ensureControlDatabase(
  installation: Installation,
  onLine: (line: string) => void,
): Promise<void> {
  const user = controlUser(installation)
  const directory = controlDirectory(installation)
  const target = controlDataDirectory(installation)
  if (!existsSync(join(target, 'PG_VERSION'))) {
    const staging = join(directory, 'pgdata.new')
    // passed by its user, changed by us alone: what lies in it cannot be swapped for a link
    mkdirSync(directory, { recursive: true, mode: 0o711 })
    removeStaging(staging)
    mkdirSync(staging, { mode: 0o700 })
    if (user.switchTo !== null) lchownSync(staging, user.switchTo.uid, user.switchTo.gid)
    const { status, tail } = await runProgram(
      join(installation.enginePrefix, 'bin/initdb'),
      [
        '-D',
        staging,
        '-U',
        SUPERUSER,
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
  await settleOwner(installation, user)
  let changed = false
  const main = join(target, 'postgresql.conf')
  const include = `include = '${managedFile}'`
  const text = readRegularFile(main)
  if (!text.split('\n').includes(include)) writeOwned(user, main, `${text}\n${include}\n`, 0o600)
  for (const [name, content] of [
    [managedFile, settings(installation)],
    ['pg_hba.conf', hostBasedAuthentication(installation)],
    ['pg_ident.conf', userMap(installation)],
  ] as const) {
    const file = join(target, name)
    if (readIfThere(file) === content) continue
    changed = true
    writeOwned(user, file, content, 0o600)
  }
  // most of it is read at a start only
  if (changed) await stopControlDatabase(installation)
}

/** What an earlier run that was killed left: it may belong to the user that ran the control database then. */
function removeStaging(staging: string): void {
  const found = lstatSync(staging, { throwIfNoEntry: false })
  if (found === undefined) return
  const as = isRoot() && found.uid !== 0 ? ['--as', `${found.uid}:${found.gid}`] : []
  changeTree([...as, 'remove', '--inside', staging])
  rmdirSync(staging)
}

/**
 * Gives the control database of an earlier version to its own user, and where its superuser had the name of the user who
 * ran it, makes the one that it has now. A note says from whom, until all of it is given: killed half-way it goes on.
 */
async function settleOwner(installation: Installation, user: OsUser): Promise<void> {
  const directory = controlDataDirectory(installation)
  const note = join(controlDirectory(installation), 'former-owner')
  const { uid: owner } = lstatSync(directory)
  if (user.switchTo !== null) {
    const { uid, gid } = user.switchTo
    if (owner !== uid) {
      await stopControlDatabase(installation)
      replaceFile(note, `${owner}\n`)
    }
    const from = readIfThere(note)?.trim()
    if (from !== undefined) {
      changeTree(['hand-over', '--from', from, '--to', `${uid}:${gid}`, directory])
      rmSync(note)
      // its socket lay beside those of the instances, where its user can remove nothing any more
      const former = join(installation.socketDirectory, `.s.PGSQL.${installation.controlDatabase.port}`)
      for (const file of [former, `${former}.lock`]) rmSync(file, { force: true })
    }
  }
  // without root the superuser had the name of the user that ran "up"
  if (isRoot() || readIfThere(join(directory, 'pg_hba.conf'))?.includes(`local all ${SUPERUSER} peer map`))
    return
  await stopControlDatabase(installation)
  const { status, tail } = await runProgram(
    join(installation.enginePrefix, 'bin/postgres'),
    ['--single', '-D', directory, 'postgres'],
    { cwd: '/', env: engineEnvironment(), input: `CREATE ROLE ${SUPERUSER} SUPERUSER LOGIN\n` },
  )
  if (status !== 0 || tail.some((line) => /ERROR|FATAL/.test(line) && !line.includes('already exists')))
    throw fault('control_database.no_role', 'could not prepare the control database', {
      detail: tail.slice(-8).join('\n'),
    })
}

function readIfThere(file: string): string | null {
  try {
    return readRegularFile(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/**
 * Makes the console's roles and database in the running control database. The roles of web and controller own nothing and
 * have no attribute but LOGIN; what they may do is granted after the migrations.
 */
export async function ensureConsoleRoles(installation: Installation): Promise<void> {
  const { name, socketDirectory, port } = installation.controlDatabase
  const role = (role: string, attributes: string) => `
SELECT 'CREATE ROLE ${role}' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${role}') \\gexec
ALTER ROLE ${role} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS ${attributes} PASSWORD NULL;`
  const script = `
SET client_min_messages = warning;
${role(OWNER, 'NOLOGIN')}
${Object.entries(connectionLimits)
  .map(([name, limit]) => role(name, `LOGIN CONNECTION LIMIT ${limit}`))
  .join('')}
SELECT 'CREATE DATABASE ${name} OWNER ${OWNER}' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '${name}') \\gexec
`
  const { status, tail } = await runProgram(
    join(installation.enginePrefix, 'bin/psql'),
    [
      '-Xq',
      '-v',
      'ON_ERROR_STOP=1',
      '-h',
      socketDirectory,
      '-p',
      String(port),
      '-U',
      SUPERUSER,
      '-d',
      'postgres',
    ],
    { cwd: '/', env: engineEnvironment(), input: script },
  )
  if (status !== 0)
    throw fault('control_database.no_role', 'could not prepare the control database', {
      detail: tail.join('\n'),
    })
}
