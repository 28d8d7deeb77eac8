import { z } from 'zod'
import { STALL_AFTER_LEAST_MS } from './stall-length'

/** The address at which nobody but its own machine reaches a host. */
export const LOOPBACK = '127.0.0.1'

/**
 * What an agent reads of `config.json` in FLOE_HOME. On a host that was enrolled into another machine's console it is the
 * whole file. Paths are absolute. Secrets are not in here but in files of `FLOE_HOME/secrets`.
 */
export const HostConfiguration = z.object({
  version: z.literal(1),
  installationId: z.uuid(),
  hostId: z.uuid(),
  hostName: z.string(),
  /** Where other hosts reach this one: its agent listens there, and its instances there and on the loopback. */
  hostAddress: z.string().default(LOOPBACK),
  agentPort: z.number().int(),
  instancePorts: z.object({ from: z.number().int(), to: z.number().int() }),
  /** Prefix of the engine new instances are created with: bin/, lib/, share/. */
  enginePrefix: z.string(),
  /** Holds `control/` and one directory per instance; reachable by engineUser. */
  instancesDirectory: z.string(),
  /** Short directory for Unix sockets (their paths are limited to 107 bytes). */
  socketDirectory: z.string(),
  /** The unprivileged user that engines run as; null: the user of the process itself. */
  engineUser: z.string().nullable(),
  /** Uids that the agent gives to instances, one each; 50000 to 59999 unless it is written here. */
  instanceUsers: z.object({ from: z.number().int().min(1000), to: z.number().int() }).optional(),
  /** Whether the agent automatically starts an instance that crashed; it does unless this is false. */
  startCrashed: z.boolean().optional(),
  /**
   * How long an instance has work and commits none of it before that is a stall, ms; 1000 unless it is written here. An
   * instance may be told another length.
   */
  stallAfterMs: z.number().int().min(STALL_AFTER_LEAST_MS).optional(),
  /** The unit of systemd that starts Floe with the machine, where a package brings it. */
  bootUnit: z.string().optional(),
})
export type HostConfiguration = z.infer<typeof HostConfiguration>

/** The unit of systemd that starts Floe with the machine, where it does; by the host, of which a machine may have several. */
export const bootUnitOf = ({ hostId, bootUnit }: Pick<HostConfiguration, 'hostId' | 'bootUnit'>): string =>
  bootUnit ?? `floe-${hostId.slice(0, 8)}.service`

/** The OS users that keep the parts of the console from one another on a root installation. */
export const ConsoleUsers = z.object({
  controlDatabase: z.string(),
  web: z.string(),
  controller: z.string(),
  /** Group of web and controller: who may reach the socket of the control database. */
  group: z.string(),
})
export type ConsoleUsers = z.infer<typeof ConsoleUsers>

/** Where the control database answers. */
export const ControlDatabase = z.object({
  name: z.string(),
  /** Directory of its Unix socket, which is the only thing it listens on. */
  socketDirectory: z.string(),
  /** Names the socket. */
  port: z.number().int(),
  /**
   * `postgresql://OWNER@HOST:PORT/NAME?sslmode=verify-full&sslrootcert=FILE` of one that Floe does not run, without a
   * password; null where it runs its own. `./floe up` refuses every other form.
   */
  url: z.string().nullable(),
  /** Of such a one: it has held this installation's data, so that an empty one is not taken for it any more. */
  claimed: z.boolean().optional(),
})
export type ControlDatabase = z.infer<typeof ControlDatabase>

const InstallationShape = HostConfiguration.extend({
  webAddress: z.string(),
  webPort: z.number().int(),
  /** What a browser types; also the origin that sessions are bound to. */
  webUrl: z.url(),
  /** The Unix socket at which web answers its own machine. */
  webSocket: z.string(),
  controlDatabase: ControlDatabase,
  /** null: without root everything runs as one user, which is one trust domain. */
  users: ConsoleUsers.nullable(),
  /** Addresses and networks (10.0.0.7, fd00::/64) that webhooks may name although they are this machine's or its site's. */
  webhookAddresses: z.array(z.string()).optional(),
  /**
   * Addresses and networks of the proxies before the console: of them alone X-Forwarded-For is believed. No network that
   * clients are in, or they choose whom they are taken for.
   */
  trustedProxies: z.array(z.string()).optional(),
  /** Holds the homes of web and controller, `web/` and `controller/`, where those users can reach them. */
  consoleDirectory: z.string(),
})

/** What a `config.json` held before the console's parts had users of their own; "./floe up" rewrites it. */
const FormerInstallation = z.object({
  controlPort: z.number().int(),
  controlDatabase: z.object({ user: z.string(), name: z.string() }),
  instancesDirectory: z.string(),
  socketDirectory: z.string(),
})

function fromFormer(config: unknown): unknown {
  const former = FormerInstallation.safeParse(config)
  if (!former.success) return config
  const { controlPort, controlDatabase, instancesDirectory, socketDirectory } = former.data
  return {
    ...(config as object),
    webSocket: webSocketIn(socketDirectory),
    controlDatabase: { name: controlDatabase.name, socketDirectory, port: controlPort, url: null },
    users: null,
    consoleDirectory: instancesDirectory.replace(/\/instances$/, ''),
  }
}

/** `config.json` of the console's own machine: what `./floe up` decided once and every process reads. */
export const Installation = z.preprocess(fromFormer, InstallationShape)
export type Installation = z.infer<typeof Installation>

/** The Unix socket of web below the directory of sockets. */
export const webSocketIn = (socketDirectory: string): string => `${socketDirectory}/web/console.sock`

/** Role that each of the console's processes is in the control database. */
export const controlDatabaseRoles = { web: 'floe_web', controller: 'floe_controller' } as const

/**
 * Connection string of the control database for a role: over its Unix socket, where the kernel says who asks. Of one that
 * Floe does not run it is the address in config.json, with this role in the owner's place and the role's password.
 */
export function controlDatabaseUrl(
  { controlDatabase: database }: Pick<Installation, 'controlDatabase'>,
  role: string,
  password?: string,
): string {
  const url = new URL(database.url ?? 'postgresql://localhost')
  url.username = encodeURIComponent(role)
  if (password) url.password = encodeURIComponent(password)
  if (database.url === null) {
    url.port = String(database.port)
    url.pathname = `/${encodeURIComponent(database.name)}`
    url.searchParams.set('host', database.socketDirectory)
  }
  return url.toString()
}

/** FLOE_HOME of web or controller: config.json and the secrets that this process needs. */
export function programHome(
  { consoleDirectory }: Pick<Installation, 'consoleDirectory'>,
  name: 'web' | 'controller',
): string {
  return `${consoleDirectory}/${name}`
}

/** Where a host's agent answers. */
export function agentUrl(host: Pick<HostConfiguration, 'hostAddress' | 'agentPort'>): string {
  const { hostAddress: address, agentPort } = host
  return `https://${address.includes(':') ? `[${address}]` : address}:${agentPort}`
}

/**
 * File names in `FLOE_HOME/secrets`. An identity is a certificate with its key in one file, so that both are replaced at
 * once. A host that was enrolled into another machine's console has `authority` and `agentIdentity` only.
 */
export const secretFiles = {
  authority: 'ca.pem',
  authorityKey: 'ca.key',
  agentIdentity: 'agent.pem',
  webIdentity: 'web.pem',
  controllerIdentity: 'controller.pem',
  authSecret: 'auth-secret',
  cliToken: 'cli-token',
  /** The three of a control database that Floe does not run. */
  controlOwnerPassword: 'control-owner-password',
  controlWebPassword: 'control-web-password',
  controlControllerPassword: 'control-controller-password',
} as const
