import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueHostIdentity, makeAuthority } from '@floe/authority'
import { FaultError, type Installation, LOOPBACK, secretFiles } from '@floe/domain'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { decideInstallation } from './decide'
import {
  type Home,
  homeAt,
  installationIsWritten,
  makeHome,
  newInstallationId,
  readInstallation,
  writeInstallation,
} from './home'

let home: Home
let installation: Installation
beforeEach(() => {
  home = homeAt(mkdtempSync(join(tmpdir(), 'floe-home-')))
  makeHome(home)
  installation = decideInstallation(
    null,
    {},
    {
      installationId: newInstallationId(home),
      hostName: 'alpha',
      enginePrefix: '/cache/engine/release-1',
      engineUser: null,
      instancesDirectory: join(home.directory, 'instances'),
      socketDirectory: join(home.run, 'sockets'),
      users: null,
      consoleDirectory: home.directory,
    },
  )
  for (const name of ['web', 'controller']) mkdirSync(join(home.directory, name), { recursive: true })
  writeInstallation(home, installation)
})
afterEach(() => rmSync(home.directory, { recursive: true }))

function faultOf(call: () => unknown) {
  try {
    call()
  } catch (error) {
    if (error instanceof FaultError) return error.fault
    throw error
  }
  throw new Error('nothing was refused')
}

test('a configuration that was cut short is mended by the copy beside it, as the hint says', () => {
  const whole = readFileSync(home.configFile, 'utf8')
  truncateSync(home.configFile, 100)
  const { code, hint } = faultOf(() => readInstallation(home))
  expect(code).toBe('installation.unreadable')
  const [, from, to] = /cp "(.+)" "(.+)"$/.exec(hint ?? '') ?? []
  cpSync(from as string, to as string)
  expect(readFileSync(home.configFile, 'utf8')).toBe(whole)
  expect(readInstallation(home)).toEqual(installation)
  expect(installationIsWritten(home, installation)).toBe(true)
})

test('a copy that is damaged as well is not offered; the host’s own id is read from its certificate', async () => {
  for (const file of [home.configFile, home.keptConfigFile]) truncateSync(file, 100)
  expect(faultOf(() => readInstallation(home)).hint).toBe('Repair the file, or restore it from a backup.')
  writeFileSync(
    join(home.secrets, secretFiles.agentIdentity),
    await issueHostIdentity(await makeAuthority(), { hostId: installation.hostId, addresses: [LOOPBACK] }),
  )
  expect(faultOf(() => readInstallation(home)).hint).toContain(`Its "hostId" is ${installation.hostId}.`)
})

test.each([
  ['keys', () => writeFileSync(join(home.secrets, secretFiles.authorityKey), 'a key')],
  [
    'a control database',
    () => mkdirSync(join(home.directory, 'instances/control/pgdata'), { recursive: true }),
  ],
])('no new installation takes the place of one that left %s', (_what, leave) => {
  rmSync(home.configFile)
  rmSync(home.keptConfigFile)
  expect(newInstallationId(home)).toMatch(/^[0-9a-f-]{36}$/)
  leave()
  expect(faultOf(() => newInstallationId(home)).code).toBe('installation.configuration_lost')
})

test('a configuration that was moved away is asked back, and not made anew', () => {
  renameSync(home.configFile, `${home.configFile}.away`)
  expect(readInstallation(home)).toBeNull()
  expect(faultOf(() => newInstallationId(home)).hint).toContain(`cp "${home.keptConfigFile}"`)
})

test('an installation of before has its copy made', () => {
  rmSync(home.keptConfigFile)
  expect(installationIsWritten(home, installation)).toBe(false)
  writeInstallation(home, installation)
  expect(readFileSync(home.keptConfigFile, 'utf8')).toBe(readFileSync(home.configFile, 'utf8'))
})
