import { z } from 'zod'

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
  /** Whether the agent starts an instance that crashed by itself; it does unless this is false. */
  startCrashed: z.boolean().optional(),
})
export type HostConfiguration = z.infer<typeof HostConfiguration>

/** `config.json` of the console's own machine: what `./floe up` decided once and every process reads. */
export const Installation = HostConfiguration.extend({
  /** Address that web listens on; the control database listens on 127.0.0.1. */
  webAddress: z.string(),
  webPort: z.number().int(),
  /** What a browser types; also the origin that sessions are bound to. */
  webUrl: z.url(),
  controlPort: z.number().int(),
  controlDatabase: z.object({ user: z.string(), name: z.string() }),
})
export type Installation = z.infer<typeof Installation>

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
  controlPassword: 'control-password',
} as const
