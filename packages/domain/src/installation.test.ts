import { expect, test } from 'vitest'
import { controlDatabaseUrl, Installation } from './installation'

const former = {
  version: 1,
  installationId: '0b0c2f34-9f4e-4d8e-8a43-5d8f0c7f2f10',
  hostId: '64bdc4c2-0000-4000-8000-000000000001',
  hostName: 'alpha',
  hostAddress: '127.0.0.1',
  webAddress: '127.0.0.1',
  webPort: 3000,
  webUrl: 'http://127.0.0.1:3000',
  agentPort: 3001,
  controlPort: 3002,
  instancePorts: { from: 5500, to: 5999 },
  enginePrefix: '/cache/engine/release-1',
  instancesDirectory: '/var/lib/floe/0b0c2f34',
  socketDirectory: '/run/floe/0b0c2f34',
  engineUser: 'floe',
  controlDatabase: { user: 'console', name: 'console' },
}

test('a config.json of before the users of the console is read as what it meant', () => {
  const read = Installation.parse(former)
  expect(read).toMatchObject({
    webSocket: '/run/floe/0b0c2f34/web/console.sock',
    controlDatabase: { name: 'console', socketDirectory: '/run/floe/0b0c2f34', port: 3002, url: null },
    users: null,
    consoleDirectory: '/var/lib/floe/0b0c2f34',
  })
  expect(Installation.parse(read)).toEqual(read)
  expect(
    Installation.parse({ ...former, instancesDirectory: '/home/me/.floe/instances' }).consoleDirectory,
  ).toBe('/home/me/.floe')
})

test('the control database is reached over its socket, or where it is somebody else’s by its address', () => {
  const own = { name: 'console', socketDirectory: '/run/floe/1/control', port: 3002, url: null }
  expect(controlDatabaseUrl({ controlDatabase: own }, 'floe_web')).toBe(
    'postgresql://floe_web@localhost:3002/console?host=%2Frun%2Ffloe%2F1%2Fcontrol',
  )
  const url = 'postgresql://floe_owner@db.example:5432/floe?sslmode=verify-full'
  expect(controlDatabaseUrl({ controlDatabase: { ...own, url } }, 'floe_web', 'a/b')).toBe(
    'postgresql://floe_web:a%2Fb@db.example:5432/floe?sslmode=verify-full',
  )
})
