// A backup is kept as what is to be restored as a whole or not at all; of where things lie nothing of it is believed.
import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { secretFiles } from '@floe/domain'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { homeAt, makeHome, requireInstallation } from '../installation/home'
import { writeArchive } from './archive'
import { secretEntry } from './contents'
import { writeEncrypted } from './encrypted-file'
import { endRestore, pendingRestore, placeRestoredFiles, stageRestore } from './pending-restore'

const PASSPHRASE = 'correct horse battery staple'
const installationId = randomUUID()
const evil = '/etc/evil'
const configuration = {
  version: 1,
  installationId,
  hostId: randomUUID(),
  hostName: 'here',
  hostAddress: '127.0.0.1',
  agentPort: 4001,
  instancePorts: { from: 5000, to: 5010 },
  enginePrefix: evil,
  instancesDirectory: evil,
  socketDirectory: evil,
  engineUser: 'root',
  webAddress: '127.0.0.1',
  webPort: 4000,
  webUrl: 'http://127.0.0.1:4000',
  webSocket: `${evil}/console.sock`,
  controlDatabase: { name: 'console', socketDirectory: evil, port: 4002, url: null },
  users: { controlDatabase: 'root', web: 'root', controller: 'root', group: 'root' },
  consoleDirectory: evil,
}
const manifest = {
  format: 'floe-console-backup',
  version: 1,
  installationId,
  madeAt: 1_800_000_000_000,
  secrets: ['authority', 'authorityKey'],
}
const good = (): Record<string, string> => ({
  'manifest.json': JSON.stringify(manifest),
  'config.json': JSON.stringify(configuration),
  [secretEntry('authority')]: 'certificate',
  [secretEntry('authorityKey')]: 'key',
  'control.dump': 'dump',
})

let directory: string
let home: ReturnType<typeof homeAt>
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-restore-'))
  home = homeAt(join(directory, 'home'))
  makeHome(home)
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

let made = 0
const backup = async (files: Record<string, string>) => {
  const file = join(directory, `backup-${made++}`)
  const entries = Object.entries(files).map(([name, text]) => ({
    name,
    size: Buffer.byteLength(text),
    content: [Buffer.from(text)],
  }))
  await writeEncrypted(file, PASSPHRASE, writeArchive(entries), 8)
  return file
}
const left = () => readdirSync(home.directory).sort()

test('a backup is placed without any path, user or program of it', async () => {
  const pending = await stageRestore(home, await backup(good()), PASSPHRASE)
  expect(readFileSync(pending.dumpFile, 'utf8')).toBe('dump')
  expect(statSync(join(home.directory, 'restore')).mode & 0o777).toBe(0o700)
  placeRestoredFiles(home, pending)
  const installation = requireInstallation(home)
  expect(installation).toMatchObject({ installationId, webPort: 4000, hostId: configuration.hostId })
  expect(JSON.stringify(installation)).not.toContain('evil')
  expect([installation.engineUser, installation.users]).not.toContain('root')
  expect(readFileSync(join(home.secrets, secretFiles.authorityKey), 'utf8')).toBe('key')
  expect(statSync(join(home.secrets, secretFiles.authorityKey)).mode & 0o777).toBe(0o600)
  // killed here it goes on with the same restore
  expect(pendingRestore(home)?.restoreId).toBe(pending.restoreId)
  placeRestoredFiles(home, pending)
  endRestore(home)
  expect(pendingRestore(home)).toBeNull()
  expect(existsSync(pending.dumpFile)).toBe(false)
})

test('what lacks a file, has another one, or says of itself what is not so changes nothing', async () => {
  const before = left()
  const without = (name: string) =>
    Object.fromEntries(Object.entries(good()).filter(([other]) => other !== name))
  const told = (more: object) => ({ ...good(), 'config.json': JSON.stringify({ ...configuration, ...more }) })
  const bad: Record<string, string>[] = [
    without('control.dump'),
    without('config.json'),
    without('manifest.json'),
    without(secretEntry('authorityKey')),
    { ...good(), [secretEntry('cliToken')]: 'not listed' },
    { ...good(), 'secrets/../../../evil': 'x' },
    { ...good(), 'manifest.json': 'no JSON' },
    { ...good(), 'manifest.json': JSON.stringify({ ...manifest, version: 2 }) },
    told({ installationId: '../../evil' }),
    told({ installationId: randomUUID() }),
    told({ controlDatabase: { ...configuration.controlDatabase, name: 'x"; DROP DATABASE y' } }),
    told({ hostAddress: '127.0.0.1; evil' }),
  ]
  for (const files of bad)
    await expect(stageRestore(home, await backup(files), PASSPHRASE)).rejects.toMatchObject({
      fault: { code: 'backup.damaged' },
    })
  await expect(stageRestore(home, await backup(good()), 'another passphrase')).rejects.toMatchObject({
    fault: { code: 'backup.not_opened' },
  })
  await expect(
    stageRestore(home, await backup(good()), PASSPHRASE, () => {
      throw new Error('not this one')
    }),
  ).rejects.toThrow('not this one')
  expect(left()).toEqual(before)
})

test('a backup that is damaged leaves the restore that is under way as it is', async () => {
  const { restoreId } = await stageRestore(home, await backup(good()), PASSPHRASE)
  await expect(stageRestore(home, await backup({}), PASSPHRASE)).rejects.toMatchObject({
    fault: { code: 'backup.damaged' },
  })
  expect(pendingRestore(home)?.restoreId).toBe(restoreId)
})
