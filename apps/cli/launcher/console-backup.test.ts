// A console that was restored from before a switchover ends nothing: it says so, and goes on when a person has decided.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { alive, freePorts, launcher, PrivateHome, until } from './private-home'

const PASSPHRASE = 'four random words here'
const home = new PrivateHome()
const inHome = (name: string) => join(home.directory, name)
const passphraseFile = inHome('passphrase')
const backup = inHome('console.age')

type Incident = { key: string; detail: string | null }
type Member = { name: string; memberRole: string }
const incidents = async () =>
  (await home.json<Incident[]>('incident', 'list')).filter((i) =>
    i.key.startsWith('control-database-restored:'),
  )
const members = async () =>
  (await home.json<{ cluster: { members: Member[] } }>('cluster', 'show', 'c1')).cluster.members
const primary = async () => (await members()).find((m) => m.memberRole === 'primary')?.name
const refused = async (...args: string[]) => {
  const { status, stdout } = await home.run([...args, '--json'])
  expect(status, args.join(' ')).not.toBe(0)
  return (JSON.parse(stdout) as { fault: { code: string; detail?: string } }).fault
}
const restoring = (...more: string[]) => [
  ...['console', 'restore', backup, '--passphrase-file', passphraseFile],
  ...more,
]
const config = () =>
  JSON.parse(readFileSync(inHome('config.json'), 'utf8')) as {
    enginePrefix: string
    instancesDirectory: string
    controlDatabase: { socketDirectory: string; port: number; name: string }
  }
/** In the control database, as its superuser. */
const sql = (statement: string) => {
  const { enginePrefix, controlDatabase } = config()
  const { socketDirectory, port, name } = controlDatabase
  return execFileSync(
    join(enginePrefix, 'bin/psql'),
    ['-XAtq', '-h', socketDirectory, '-p', `${port}`, '-U', 'floe', '-d', name, '-c', statement],
    { encoding: 'utf8' },
  ).trim()
}
/** The postmaster of an instance. */
const postmasterOf = (name: string) => {
  const id = sql(`SELECT id FROM instance WHERE name = '${name}' AND "deletedAt" IS NULL`)
  const file = join(config().instancesDirectory, id, 'pgdata/postmaster.pid')
  return Number(readFileSync(file, 'utf8').split('\n')[0])
}

beforeAll(async () => {
  const base = await freePorts(8)
  writeFileSync(passphraseFile, `${PASSPHRASE}\n`, { mode: 0o600 })
  await home.json('up', '--port', `${base}`, '--instance-ports', `${base + 3}-${base + 7}`)
  await home.json('instance', 'create', 'c1')
  await home.json('standby', 'create', 'c1', 'c2')
  await until('the timeline of the primary is recorded', () =>
    Boolean(sql(`SELECT 1 FROM cluster WHERE holdings->'timeline'->>'timeline' = '1'`)),
  )
})
afterAll(() => home.remove())

test('a backup is one file for its owner alone, and never takes the place of another', async () => {
  const make = ['console', 'backup', backup, '--passphrase-file', passphraseFile]
  expect(await home.json(...make)).toMatchObject({ file: backup, samples: false })
  expect(statSync(backup).mode & 0o777).toBe(0o600)
  const before = readFileSync(backup)
  expect(await refused(...make)).toMatchObject({ code: 'backup.exists' })
  expect(before.equals(readFileSync(backup))).toBe(true)
  expect(readdirSync(inHome('secrets')).filter((name) => name.startsWith('dump'))).toEqual([])
})

test('it is restored only into what is stopped, only where that is asked for, and only with its passphrase', async () => {
  await home.json('cluster', 'switchover', 'c1')
  expect(await primary()).toBe('c2')
  expect(await refused(...restoring('--replace'))).toMatchObject({ code: 'restore.running' })
  await home.json('down')
  const before = [readFileSync(inHome('config.json'), 'utf8'), readdirSync(home.directory)]
  expect(await refused(...restoring())).toMatchObject({ code: 'restore.installation_exists' })
  const wrong = inHome('passphrase.wrong')
  writeFileSync(wrong, 'four other words here\n')
  const asked = ['console', 'restore', backup, '--replace', '--passphrase-file', wrong]
  expect(await refused(...asked)).toMatchObject({ code: 'backup.not_opened' })
  expect([
    readFileSync(inHome('config.json'), 'utf8'),
    readdirSync(home.directory).filter((n) => n !== 'passphrase.wrong'),
  ]).toEqual(before)
})

test('killed in the middle and run again, it ends nothing, says what is older, and waits for a person', async () => {
  const { instancesDirectory } = config()
  const running = readdirSync(instancesDirectory)
    .map((id) => join(instancesDirectory, id, 'pgdata/postmaster.pid'))
    .filter((file) => !file.includes('/control/') && existsSync(file))
    .map((file) => Number(readFileSync(file, 'utf8').split('\n')[0]))
  expect(running).toHaveLength(2)
  const killed = spawn(launcher, restoring('--replace'), {
    env: home.environment,
    detached: true,
    stdio: 'ignore',
  })
  const ended = new Promise((resolve) => killed.once('close', resolve))
  await until('it has begun', () => existsSync(inHome('restore/restore.json')), 60_000, 10)
  process.kill(-(killed.pid as number), 'SIGKILL')
  await ended
  const restored = await home.json<{ backupMadeAt: number }>(...restoring('--replace'))
  expect(restored.backupMadeAt).toBeGreaterThan(0)
  expect(existsSync(inHome('restore'))).toBe(false)

  await until('the incident names the cluster', async () =>
    Boolean((await incidents())[0]?.detail?.includes('Cluster "c1"')),
  )
  const [incident, ...others] = await incidents()
  expect(others).toEqual([])
  expect(incident?.detail).toMatch(/"c2" is the primary on timeline 2; recorded is "c1" on timeline 1/)
  // an order of a failover before the backup, which the instance's timeline does not keep from being carried out
  sql(`UPDATE instance SET "fenceOrderedAt" = now(), "fenceTimeline" = 9 WHERE name = 'c2'`)
  expect(await refused('instance', 'stop', 'c2')).toMatchObject({ code: 'control_database.read_only' })
  const seen = () => Number(sql(`SELECT extract(epoch FROM "observedAt") FROM host`))
  for (let n = 0; n < 2; n++) {
    const at = seen()
    await until('another report is written', () => seen() > at)
  }
  // nor does it say by an older record who is the primary and who is none
  const open = (await home.json<Incident[]>('incident', 'list')).map((i) => i.key.split(':')[0])
  expect(open).not.toContain('second-primary')
  expect(open).not.toContain('no-primary')
  expect(running.map(alive)).toEqual([true, true])
  expect(sql(`SELECT count(*) FROM operation WHERE kind = 'fence-instance'`)).toBe('0')
})

test('once an admin has accepted, the record is what the members report, and operations are begun', async () => {
  const pid = postmasterOf('c2')
  await home.json('console', 'accept-restored')
  await until('the incident is closed', async () => (await incidents()).length === 0)
  expect(await primary()).toBe('c2')
  expect(sql(`SELECT count(*) FROM instance WHERE "fenceOrderedAt" IS NOT NULL`)).toBe('0')
  expect(alive(pid)).toBe(true)
  await home.json('cluster', 'switchover', 'c1')
  expect(await primary()).toBe('c1')
  expect(
    sql(
      `SELECT string_agg(action, ' ' ORDER BY id) FROM audit_event WHERE "objectKind" = 'control_database'`,
    ),
  ).toBe('control_database.back_up control_database.restore control_database.accept_restored')
  expect((await home.run(['audit', 'verify'])).status).toBe(0)
  // nothing of the loading is left: the owner cannot log in, and what was in place is kept
  expect(sql(`SELECT rolcanlogin FROM pg_roles WHERE rolname = 'console'`)).toBe('f')
  expect(sql(`SELECT count(*) FROM pg_database WHERE datname LIKE 'console\\_replaced\\_%'`)).toBe('1')
})
