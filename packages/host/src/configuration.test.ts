import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FaultError, HostConfiguration } from '@floe/domain'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readConfigurationFile, readSecretFile } from './configuration'

let directory: string
let file: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-host-'))
  file = join(directory, 'config.json')
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function faultOf(call: () => unknown) {
  try {
    call()
  } catch (error) {
    if (error instanceof FaultError) return error.fault
    throw error
  }
  throw new Error('nothing was refused')
}
const read = () => readConfigurationFile(file, HostConfiguration, 'Run "./floe up".')

const configuration: HostConfiguration = {
  version: 1,
  installationId: '0b0e5a1e-8d39-4d3c-9d3d-1f0a9a4f6c11',
  hostId: 'e4f1a7b0-6a0b-4b51-8c3e-0f6f0c2d7a22',
  hostName: 'alpha',
  hostAddress: '127.0.0.1',
  agentPort: 3001,
  instancePorts: { from: 5500, to: 5999 },
  enginePrefix: '/cache/engine',
  instancesDirectory: '/home/instances',
  socketDirectory: '/run/floe',
  engineUser: null,
}

test('a configuration is what its file says', () => {
  writeFileSync(file, JSON.stringify(configuration))
  expect(read()).toEqual(configuration)
})

test('one that is missing or cut short cannot be read, and the hint says what to do', () => {
  expect(faultOf(read)).toMatchObject({
    code: 'installation.unreadable',
    message: `could not read "${file}"`,
    detail: expect.stringContaining('ENOENT'),
    hint: 'Run "./floe up".',
  })
  writeFileSync(file, JSON.stringify(configuration))
  truncateSync(file, 20)
  expect(faultOf(read)).toMatchObject({
    code: 'installation.unreadable',
    detail: expect.stringContaining('JSON'),
  })
})

test('one that says something else is told by the names of what is wrong, and nothing is believed of it', () => {
  writeFileSync(file, JSON.stringify({ ...configuration, agentPort: '3001', instancePorts: { from: 1 } }))
  expect(faultOf(read)).toMatchObject({
    code: 'installation.invalid',
    message: `"${file}" is not valid`,
    detail: expect.stringMatching(/agentPort: .*; instancePorts\.to: /),
    hint: 'Run "./floe up".',
  })
})

test.each<[string, () => void]>([
  ['a pipe', () => execFileSync('mkfifo', [file])],
  ['a link', () => symlinkSync('/etc/passwd', file)],
])('%s in the place of a file is refused at once, and named', (_, make) => {
  make()
  const refused = {
    detail: `"${file}" is not a regular file.`,
    hint: 'Something else was put in its place. Remove it.',
  }
  expect(faultOf(read)).toMatchObject({ code: 'installation.unreadable', ...refused })
  expect(faultOf(() => readSecretFile(file, ''))).toMatchObject({
    code: 'installation.no_secret',
    message: `could not read "${file}"`,
    ...refused,
  })
})

test('a secret is read without the line end; one that cannot be read is named, with what to do', () => {
  writeFileSync(file, 'sesame\n')
  chmodSync(file, 0o600)
  expect(readSecretFile(file, '')).toBe('sesame')
  expect(faultOf(() => readSecretFile(`${file}.key`, () => 'Run it as root.'))).toMatchObject({
    code: 'installation.no_secret',
    hint: 'Run it as root.',
  })
})
