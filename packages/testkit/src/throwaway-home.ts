import { randomBytes, randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Installation, secretFiles } from '@floe/domain'
import { makeCertificates } from './certificates'
import { testEnginePrefix, testEngineUser } from './engine'
import { freePortRange, freePorts } from './free-ports'
import { giveTo, makeScratchDirectory } from './scratch-directory'

export type ThrowawayHome = {
  /** FLOE_HOME */
  home: string
  installation: Installation
  readKey: string
  taskKey: string
  /** PEM of the authority the agent's certificate is signed by. */
  authority: string
  agentUrl: string
  remove: () => void
}

/** A FLOE_HOME as "./floe up" lays it out, in a private directory with private ports. Remove it when done. */
export async function makeThrowawayHome(
  o: { enginePrefix?: string; instances?: number; overrides?: Partial<Installation> } = {},
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
    webAddress: '127.0.0.1',
    webPort,
    webUrl: `http://127.0.0.1:${webPort}`,
    agentPort,
    controlPort,
    instancePorts: await freePortRange(o.instances ?? 8),
    enginePrefix: o.enginePrefix ?? testEnginePrefix(),
    instancesDirectory: join(scratch.path, 'i'),
    socketDirectory: join(scratch.path, 's'),
    engineUser: user.name,
    controlDatabase: { user: 'floe_control', name: 'floe' },
    ...o.overrides,
  }
  for (const d of [home, join(home, 'secrets')]) mkdirSync(d, { mode: 0o700 })
  for (const d of [installation.instancesDirectory, installation.socketDirectory])
    mkdirSync(d, { mode: 0o755 })
  giveTo(installation.socketDirectory, user)
  const certificates = await makeCertificates()
  const readKey = randomBytes(24).toString('base64url')
  const taskKey = randomBytes(24).toString('base64url')
  writeFileSync(join(home, 'config.json'), JSON.stringify(installation, null, 2))
  const secrets = {
    [secretFiles.authority]: certificates.authority,
    [secretFiles.agentCertificate]: certificates.certificate,
    [secretFiles.agentCertificateKey]: certificates.key,
    [secretFiles.agentReadKey]: readKey,
    [secretFiles.agentTaskKey]: taskKey,
  }
  for (const [name, text] of Object.entries(secrets))
    writeFileSync(join(home, 'secrets', name), text, { mode: 0o600 })
  return {
    home,
    installation,
    readKey,
    taskKey,
    authority: certificates.authority,
    agentUrl: `https://127.0.0.1:${agentPort}`,
    remove: scratch.remove,
  }
}
