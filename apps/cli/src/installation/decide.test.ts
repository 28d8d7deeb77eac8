import { type FaultError, Installation } from '@floe/domain'
import { describe, expect, test } from 'vitest'
import { readExternalAddress } from '../control-database/external-address'
import { decideInstallation, type Surroundings } from './decide'

const found: Surroundings = {
  installationId: '0b0c2f34-9f4e-4d8e-8a43-5d8f0c7f2f10',
  hostName: 'alpha',
  enginePrefix: '/cache/engine/release-1',
  engineUser: 'floe',
  instancesDirectory: '/home/instances',
  socketDirectory: '/run/floe/0b0c2f34',
  users: null,
  consoleDirectory: '/home',
}

describe('the configuration', () => {
  test('of a first run is valid and takes port 3000 and the two that follow', () => {
    const first = decideInstallation(null, {}, found)
    expect(Installation.parse(first)).toEqual(first)
    expect(first).toMatchObject({
      webPort: 3000,
      agentPort: 3001,
      controlDatabase: { port: 3002 },
      instancePorts: { from: 5500, to: 5999 },
      webUrl: 'http://127.0.0.1:3000',
    })
  })

  test('stays as it is when nothing is asked, save for a new engine', () => {
    const first = decideInstallation(null, { port: 4000, agentPort: 4100 }, found)
    const again = decideInstallation(
      first,
      {},
      {
        ...found,
        installationId: 'another',
        hostName: 'renamed',
        enginePrefix: '/cache/engine/release-2',
        instancesDirectory: '/elsewhere',
      },
    )
    expect(again).toEqual({ ...first, enginePrefix: '/cache/engine/release-2' })
  })

  test('keeps what was written into it by hand', () => {
    const first = {
      ...decideInstallation(null, {}, found),
      startCrashed: false,
      webhookAddresses: ['10.0.0.7'],
      trustedProxies: ['10.0.0.8'],
    }
    expect(decideInstallation(first, {}, found)).toEqual(first)
  })

  test('has the proxies that were asked for in the place of those of before', () => {
    const first = decideInstallation(null, { trustedProxies: ['127.0.0.1', '::1'] }, found)
    expect(first.trustedProxies).toEqual(['127.0.0.1', '::1'])
    expect(decideInstallation(first, { trustedProxies: ['10.0.0.8'] }, found).trustedProxies).toEqual([
      '10.0.0.8',
    ])
  })

  test('moves agent and control database along with the port, and leaves the instances’ range where it is', () => {
    const first = decideInstallation(null, {}, found)
    expect(decideInstallation(first, { port: 4000 }, found)).toMatchObject({
      webPort: 4000,
      agentPort: 4001,
      controlDatabase: { port: 4002 },
      instancePorts: { from: 5500, to: 5999 },
      webUrl: 'http://127.0.0.1:4000',
    })
  })

  test('says an address that browsers of other hosts can use when it listens everywhere', () => {
    expect(decideInstallation(null, { listen: '0.0.0.0' }, found).webUrl).toBe('http://alpha:3000')
    expect(decideInstallation(null, { listen: '10.0.0.5' }, found).webUrl).toBe('http://10.0.0.5:3000')
    expect(decideInstallation(null, { listen: '::1' }, found).webUrl).toBe('http://127.0.0.1:3000')
    expect(decideInstallation(null, { url: 'https://floe.example' }, found).webUrl).toBe(
      'https://floe.example',
    )
  })

  test.each([
    ['the same port twice', { port: 3000, agentPort: 3000 }],
    ['a port inside the instances’ range', { port: 3000, instancePorts: { from: 2900, to: 3100 } }],
    ['ports beyond the last one', { port: 65_000 }],
    ['a range that is empty', { instancePorts: { from: 10, to: 9 } }],
  ])('refuses %s as a mistake of the caller', (_, asked) => {
    try {
      decideInstallation(null, asked, found)
      expect.unreachable()
    } catch (error) {
      expect((error as FaultError).fault.code).toBe('usage.port')
    }
  })

  const external = (host = 'db.example.com') =>
    readExternalAddress(`postgresql://floe@${host}/fleet?sslmode=verify-full&sslrootcert=/etc/ca.pem`)

  test('names a control database that Floe does not run, with its certificates where web and controller read them', () => {
    const first = decideInstallation(null, { controlDatabase: external() }, found)
    expect(Installation.parse(first)).toEqual(first)
    expect(first.controlDatabase).toMatchObject({
      name: 'fleet',
      url: 'postgresql://floe@db.example.com:5432/fleet?sslmode=verify-full&sslrootcert=%2Fhome%2Fcontrol-database-ca.pem',
    })
    // claimed once: the same when asked again or not at all, and the server may get another name
    const claimed = { ...first, controlDatabase: { ...first.controlDatabase, claimed: true } }
    expect(decideInstallation(claimed, {}, found)).toEqual(claimed)
    expect(decideInstallation(claimed, { controlDatabase: external() }, found)).toEqual(claimed)
    expect(
      decideInstallation(claimed, { controlDatabase: external('new.example.com') }, found).controlDatabase,
    ).toMatchObject({ url: expect.stringContaining('@new.example.com:5432/'), claimed: true })
  })

  test('does not give up a control database that Floe runs', () => {
    const first = decideInstallation(null, {}, found)
    try {
      decideInstallation(first, { controlDatabase: external() }, found)
      expect.unreachable()
    } catch (error) {
      expect((error as FaultError).fault).toMatchObject({
        code: 'control_database.embedded',
        hint: expect.stringContaining('another FLOE_HOME'),
      })
    }
  })

  test('has no port of a socket where Floe runs no control database', () => {
    const asked = { port: 3000, agentPort: 3001, controlPort: 3001 }
    expect(() => decideInstallation(null, asked, found)).toThrow('two processes have the same port')
    expect(decideInstallation(null, { ...asked, controlDatabase: external() }, found).agentPort).toBe(3001)
  })
})
