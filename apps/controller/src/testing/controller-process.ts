import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Installation, programHome, secretFiles } from '@floe/domain'
import type { TestAuthority } from '@floe/testkit'

/** A FLOE_HOME with what a controller reads of it: the control database, its certificate, and its own host. */
export function makeControllerHome(o: {
  connectionString: string
  authority: TestAuthority
  /** Certificate and key that may start tasks. */
  identity: string
  host: { hostId: string; name: string; agentUrl: string }
}): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'floe-controller-'))
  const agent = new URL(o.host.agentUrl)
  const installation: Installation = {
    version: 1,
    installationId: randomUUID(),
    hostId: o.host.hostId,
    hostName: o.host.name,
    hostAddress: agent.hostname,
    webAddress: '127.0.0.1',
    webPort: 1,
    webUrl: 'http://127.0.0.1:1',
    agentPort: Number(agent.port),
    instancePorts: { from: 20_000, to: 20_010 },
    enginePrefix: '/nowhere',
    instancesDirectory: '/nowhere',
    socketDirectory: '/nowhere',
    engineUser: null,
    webSocket: '/nowhere',
    controlDatabase: { name: 'console', socketDirectory: '/nowhere', port: 1, url: o.connectionString },
    users: null,
    // where tests receive webhooks
    webhookAddresses: ['127.0.0.1'],
    consoleDirectory: path,
  }
  mkdirSync(join(path, 'secrets'))
  writeFileSync(join(path, 'config.json'), JSON.stringify(installation))
  const secrets = {
    [secretFiles.authority]: o.authority.certificate,
    [secretFiles.authorityKey]: o.authority.signing.key,
    [secretFiles.controllerIdentity]: o.identity,
    [secretFiles.controlControllerPassword]: '\n',
    [secretFiles.authSecret]: 'a secret of the tests\n',
  }
  for (const [name, text] of Object.entries(secrets)) writeFileSync(join(path, 'secrets', name), text)
  const ofWeb = join(programHome(installation, 'web'), 'secrets')
  mkdirSync(ofWeb, { recursive: true })
  writeFileSync(join(ofWeb, secretFiles.webIdentity), o.identity)
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** A controller in a process of its own, which a test can kill. */
export class ControllerProcess {
  readonly child: ChildProcess
  /** Everything it printed. */
  output = ''

  constructor(bundle: string, home: string) {
    this.child = spawn(process.execPath, [bundle], {
      // compiled once for the suite: a test that kills it again and again does not compile it each time
      env: { ...process.env, FLOE_HOME: home, NODE_OPTIONS: '', NODE_COMPILE_CACHE: `${bundle}.cache` },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text
      })
  }

  /** Ends it by a signal and waits until it is gone. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
  }
}
