import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentEndpoint } from '@floe/agent-contract/client'
import {
  type AgentRight,
  agentUrl,
  type Installation,
  LOOPBACK,
  programHome,
  secretFiles,
  webSocketIn,
} from '@floe/domain'
import { makeTestAuthority, type TestAuthority } from './certificates'
import { testEnginePrefix, testEngineUser } from './engine'
import { freePortRange, freePorts } from './free-ports'
import { removeUsersOf } from './instance-users'
import { giveTo, makeScratchDirectory } from './scratch-directory'

export type ThrowawayHome = {
  /** FLOE_HOME */
  home: string
  installation: Installation
  authority: TestAuthority
  /** Certificates with keys of the web (may read) and of the controller (may start tasks). */
  identities: Record<AgentRight, string>
  agentUrl: string
  /** What a client of the agent needs, with one of both rights. */
  endpoint(right: AgentRight): AgentEndpoint
  remove: () => void
}

/** A FLOE_HOME as "./floe up" lays it out, in a private directory with private ports. Remove it when done. */
export async function makeThrowawayHome(
  o: {
    enginePrefix?: string
    instances?: number
    overrides?: Partial<Installation>
    /** Of several hosts of one installation; one of its own when left out. */
    authority?: TestAuthority
  } = {},
): Promise<ThrowawayHome> {
  const scratch = makeScratchDirectory()
  const home = join(scratch.path, 'h')
  const user = testEngineUser()
  const [webPort, agentPort, controlPort] = (await freePorts(3)) as [number, number, number]
  const installation: Installation = {
    version: 1,
    installationId: randomUUID(),
    hostId: randomUUID(),
    hostName: 'test-host',
    hostAddress: LOOPBACK,
    webAddress: '127.0.0.1',
    webPort,
    webUrl: `http://127.0.0.1:${webPort}`,
    agentPort,
    instancePorts: await freePortRange(o.instances ?? 8),
    enginePrefix: o.enginePrefix ?? testEnginePrefix(),
    instancesDirectory: join(scratch.path, 'i'),
    socketDirectory: join(scratch.path, 's'),
    engineUser: user.name,
    // tests look at what a crash leaves; who tests the start after it says so
    startCrashed: false,
    webSocket: webSocketIn(join(scratch.path, 's')),
    controlDatabase: {
      name: 'console',
      socketDirectory: join(scratch.path, 's', 'control'),
      port: controlPort,
      url: null,
    },
    users: null,
    consoleDirectory: home,
    ...o.overrides,
  }
  for (const d of [home, join(home, 'secrets')]) mkdirSync(d, { mode: 0o700 })
  for (const d of [installation.instancesDirectory, installation.socketDirectory])
    mkdirSync(d, { mode: 0o755 })
  giveTo(installation.socketDirectory, user)
  const authority = o.authority ?? (await makeTestAuthority())
  const { hostId, hostAddress } = installation
  const identities = { read: await authority.console('read'), task: await authority.console('task') }
  writeFileSync(join(home, 'config.json'), JSON.stringify(installation, null, 2))
  const secrets = {
    [secretFiles.authority]: authority.certificate,
    [secretFiles.authorityKey]: authority.signing.key,
    [secretFiles.agentIdentity]: await authority.host(hostId, {
      addresses: [hostAddress, LOOPBACK, 'localhost'],
    }),
    [secretFiles.controllerIdentity]: identities.task,
  }
  for (const [name, text] of Object.entries(secrets))
    writeFileSync(join(home, 'secrets', name), text, { mode: 0o600 })
  const ofWeb = join(programHome(installation, 'web'), 'secrets')
  mkdirSync(ofWeb, { recursive: true, mode: 0o700 })
  writeFileSync(join(ofWeb, secretFiles.webIdentity), identities.read, { mode: 0o600 })
  const url = agentUrl(installation)
  return {
    home,
    installation,
    authority,
    identities,
    agentUrl: url,
    endpoint: (right) => ({ url, hostId, authority: authority.certificate, identity: identities[right] }),
    remove: () => {
      removeUsersOf(home)
      scratch.remove()
    },
  }
}
