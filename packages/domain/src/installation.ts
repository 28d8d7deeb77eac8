import { z } from 'zod'

/**
 * `config.json` in FLOE_HOME: what `./floe up` decided once and every process reads. Paths are absolute. Secrets are not
 * in here but in files of `FLOE_HOME/secrets`.
 */
export const Installation = z.object({
  version: z.literal(1),
  installationId: z.uuid(),
  hostId: z.uuid(),
  hostName: z.string(),
  /** Address that web listens on; the agent and the control database listen on 127.0.0.1. */
  webAddress: z.string(),
  webPort: z.number().int(),
  /** What a browser types; also the origin that sessions are bound to. */
  webUrl: z.url(),
  agentPort: z.number().int(),
  controlPort: z.number().int(),
  instancePorts: z.object({ from: z.number().int(), to: z.number().int() }),
  /** Prefix of the engine new instances are created with: bin/, lib/, share/. */
  enginePrefix: z.string(),
  /** Holds `control/` and one directory per instance; reachable by engineUser. */
  instancesDirectory: z.string(),
  /** Short directory for Unix sockets (their paths are limited to 107 bytes). */
  socketDirectory: z.string(),
  /** The unprivileged user that engines run as; null: the user of the process itself. */
  engineUser: z.string().nullable(),
  controlDatabase: z.object({ user: z.string(), name: z.string() }),
})
export type Installation = z.infer<typeof Installation>

/** File names in `FLOE_HOME/secrets`. */
export const secretFiles = {
  authority: 'ca.pem',
  authorityKey: 'ca.key',
  agentCertificate: 'agent.pem',
  agentCertificateKey: 'agent.key',
  agentReadKey: 'agent-read.key',
  agentTaskKey: 'agent-task.key',
  authSecret: 'auth-secret',
  cliToken: 'cli-token',
  controlPassword: 'control-password',
} as const
