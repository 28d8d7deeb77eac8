import { randomUUID } from 'node:crypto'
import { fault, type Installation, LOOPBACK } from '@floe/domain'

/** What a person asked `up` for. Left out: as it is, or the default. */
export type UpOptions = {
  port?: number
  agentPort?: number
  controlPort?: number
  instancePorts?: { from: number; to: number }
  listen?: string
  hostAddress?: string
  url?: string
}

/** What was found out about this machine. */
export type Surroundings = {
  /** A fresh one; an installation that exists keeps its own. */
  installationId: string
  hostName: string
  enginePrefix: string
  engineUser: string | null
  instancesDirectory: string
  socketDirectory: string
}

const DEFAULT_PORT = 3000
const PORT_MAX = 65_535

const onlyThisHost = (address: string) =>
  address === '127.0.0.1' || address === 'localhost' || address === '::1'
const everyAddress = (address: string) => address === '0.0.0.0' || address === '::'

function urlOf(address: string, port: number, hostName: string): string {
  const host = onlyThisHost(address) ? '127.0.0.1' : everyAddress(address) ? hostName : address
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/**
 * The configuration of an installation: what was asked, else what it was before, else the defaults. Ids never change;
 * nor do directories once they are in use; and ports only when somebody asks.
 */
export function decideInstallation(
  before: Installation | null,
  asked: UpOptions,
  found: Surroundings,
): Installation {
  const webPort = asked.port ?? before?.webPort ?? DEFAULT_PORT
  const moved = before !== null && asked.port !== undefined && asked.port !== before.webPort
  const agentPort = asked.agentPort ?? (before && !moved ? before.agentPort : webPort + 1)
  const controlPort = asked.controlPort ?? (before && !moved ? before.controlPort : webPort + 2)
  // instances keep their ports, so the range stays where it was
  const instancePorts = asked.instancePorts ??
    before?.instancePorts ?? { from: webPort + 2_500, to: webPort + 2_999 }
  const ports = { web: webPort, agent: agentPort, 'control database': controlPort }
  const refuse = (message: string, detail: string) => {
    throw fault('usage.port', message, { detail, hint: 'Run "./floe up --help" for the options of ports.' })
  }
  for (const [name, port] of [
    ...Object.entries(ports),
    ['instances', instancePorts.from] as const,
    ['instances', instancePorts.to] as const,
  ]) {
    if (!Number.isInteger(port) || port < 1 || port > PORT_MAX)
      refuse(`port ${port} of ${name} is out of range`, `Ports go from 1 to ${PORT_MAX}.`)
  }
  if (instancePorts.from > instancePorts.to)
    refuse(
      'the range of instance ports is empty',
      `It goes from ${instancePorts.from} to ${instancePorts.to}.`,
    )
  if (new Set(Object.values(ports)).size !== 3)
    refuse(
      'two processes have the same port',
      `Web ${webPort}, agent ${agentPort}, control database ${controlPort}.`,
    )
  for (const [name, port] of Object.entries(ports))
    if (port >= instancePorts.from && port <= instancePorts.to)
      refuse(
        `port ${port} of ${name} lies in the range of instance ports`,
        `The range is ${instancePorts.from}-${instancePorts.to}.`,
      )

  const webAddress = asked.listen ?? before?.webAddress ?? '127.0.0.1'
  const unmoved = before !== null && before.webPort === webPort && before.webAddress === webAddress
  return {
    version: 1,
    installationId: before?.installationId ?? found.installationId,
    hostId: before?.hostId ?? randomUUID(),
    hostName: before?.hostName ?? found.hostName,
    hostAddress: asked.hostAddress ?? before?.hostAddress ?? LOOPBACK,
    webAddress,
    webPort,
    webUrl: asked.url ?? (unmoved ? before.webUrl : urlOf(webAddress, webPort, found.hostName)),
    agentPort,
    controlPort,
    instancePorts,
    enginePrefix: found.enginePrefix,
    instancesDirectory: before?.instancesDirectory ?? found.instancesDirectory,
    socketDirectory: before?.socketDirectory ?? found.socketDirectory,
    engineUser: found.engineUser,
    controlDatabase: before?.controlDatabase ?? { user: 'console', name: 'console' },
    // written by hand: nothing asks for it
    ...(before?.startCrashed === undefined ? {} : { startCrashed: before.startCrashed }),
  }
}
