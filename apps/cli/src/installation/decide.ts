import { randomUUID } from 'node:crypto'
import { type ConsoleUsers, fault, type Installation, LOOPBACK, webSocketIn } from '@floe/domain'
import {
  type ExternalAddress,
  rootCertificatesFile,
  withRootCertificates,
} from '../control-database/external-address'

/** What a person asked `up` for. Left out: as it is, or the default. */
export type UpOptions = {
  port?: number
  agentPort?: number
  controlPort?: number
  instancePorts?: { from: number; to: number }
  listen?: string
  hostAddress?: string
  url?: string
  /** Proxies before the console; they take the place of those of before. */
  trustedProxies?: string[]
  /** A control database that Floe does not run. */
  controlDatabase?: ExternalAddress
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
  users: ConsoleUsers | null
  consoleDirectory: string
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
  const controlPort = asked.controlPort ?? (before && !moved ? before.controlDatabase.port : webPort + 2)
  // instances keep their ports, so the range stays where it was
  const instancePorts = asked.instancePorts ??
    before?.instancePorts ?? { from: webPort + 2_500, to: webPort + 2_999 }
  const external = decideExternal(before, asked.controlDatabase, found)
  // one that Floe does not run has no socket to be named
  const ports = {
    web: webPort,
    agent: agentPort,
    ...(external === null ? { 'control database': controlPort } : {}),
  }
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
  if (new Set(Object.values(ports)).size !== Object.keys(ports).length)
    refuse(
      'two processes have the same port',
      `${Object.entries(ports)
        .map(([name, port]) => `${name} ${port}`)
        .join(', ')}.`,
    )
  for (const [name, port] of Object.entries(ports))
    if (port >= instancePorts.from && port <= instancePorts.to)
      refuse(
        `port ${port} of ${name} lies in the range of instance ports`,
        `The range is ${instancePorts.from}-${instancePorts.to}.`,
      )

  const webAddress = asked.listen ?? before?.webAddress ?? '127.0.0.1'
  const unmoved = before !== null && before.webPort === webPort && before.webAddress === webAddress
  const socketDirectory = before?.socketDirectory ?? found.socketDirectory
  const trustedProxies = asked.trustedProxies ?? before?.trustedProxies
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
    instancePorts,
    enginePrefix: found.enginePrefix,
    instancesDirectory: before?.instancesDirectory ?? found.instancesDirectory,
    socketDirectory,
    engineUser: found.engineUser,
    webSocket: webSocketIn(socketDirectory),
    controlDatabase: {
      name: external?.name ?? before?.controlDatabase.name ?? 'console',
      // the directory of the server's own user, below the one that is ours
      socketDirectory: `${socketDirectory}/control`,
      port: controlPort,
      url: external?.url ?? null,
      ...(external?.claimed ? { claimed: true } : {}),
    },
    users: found.users,
    consoleDirectory: before?.consoleDirectory ?? found.consoleDirectory,
    ...(trustedProxies === undefined ? {} : { trustedProxies }),
    // written by hand: nothing asks for it
    ...(before?.startCrashed === undefined ? {} : { startCrashed: before.startCrashed }),
    ...(before?.webhookAddresses === undefined ? {} : { webhookAddresses: before.webhookAddresses }),
  }
}

/** The control database that Floe does not run, as asked or as before; null where Floe runs its own. */
function decideExternal(
  before: Installation | null,
  asked: ExternalAddress | undefined,
  found: Surroundings,
): { name: string; url: string; claimed: boolean } | null {
  const was = before?.controlDatabase
  const claimed = was?.claimed === true
  if (asked === undefined)
    return was === undefined || was.url === null ? null : { name: was.name, url: was.url, claimed }
  if (was?.url === null)
    throw fault('control_database.embedded', 'this installation has a control database of its own', {
      detail:
        'Its hosts, instances, people and history are in there; Floe does not move them, and an empty one would not have them.',
      hint: 'Go on without --control-database; or begin another installation on the external one, in another FLOE_HOME.',
    })
  const consoleDirectory = before?.consoleDirectory ?? found.consoleDirectory
  return {
    name: asked.database,
    url:
      asked.rootCertificates === null
        ? asked.url
        : withRootCertificates(asked.url, rootCertificatesFile({ consoleDirectory })),
    claimed,
  }
}
