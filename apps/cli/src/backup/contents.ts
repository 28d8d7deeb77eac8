import { Installation, secretFiles } from '@floe/domain'
import { z } from 'zod'

/** What a backup says of itself; its first file. */
export const BackupManifest = z.object({
  format: z.literal('floe-console-backup'),
  version: z.literal(1),
  installationId: z.uuid(),
  /** ms since the epoch. */
  madeAt: z.number().int().positive(),
  /** Names of the secrets in it. */
  secrets: z.array(z.enum(Object.keys(secretFiles) as [keyof typeof secretFiles])).max(20),
})
export type BackupManifest = z.infer<typeof BackupManifest>

export const MANIFEST = 'manifest.json'
export const CONFIGURATION = 'config.json'
/** pg_dump's custom format. */
export const DUMP = 'control.dump'
export const secretEntry = (name: keyof typeof secretFiles): string => `secrets/${secretFiles[name]}`

const SMALL_BYTES_MAX = 256 * 1024
const DUMP_BYTES_MAX = 64 * 1024 ** 3 - 1

const bounds = new Map<string, number>([
  [MANIFEST, SMALL_BYTES_MAX],
  [CONFIGURATION, SMALL_BYTES_MAX],
  ...(Object.keys(secretFiles) as (keyof typeof secretFiles)[]).map(
    (name) => [secretEntry(name), SMALL_BYTES_MAX] as const,
  ),
  [DUMP, DUMP_BYTES_MAX],
])

/** How large a file of a backup may be; null for one that none has. */
export const bytesMaxOf = (name: string): number | null => bounds.get(name) ?? null

/** Of the configuration in a backup only what says nothing about the machine: no path, no user, no program. */
export const BackedUpConfiguration = z.preprocess(
  (config) => Installation.safeParse(config).data,
  z.object({
    installationId: z.uuid(),
    hostId: z.uuid(),
    hostName: z.string().min(1).max(253),
    hostAddress: z.union([z.ipv4(), z.ipv6()]),
    webAddress: z.string().max(253),
    webPort: z.number().int().min(1).max(65_535),
    webUrl: z.url().max(2_000),
    agentPort: z.number().int().min(1).max(65_535),
    instancePorts: z.object({
      from: z.number().int().min(1).max(65_535),
      to: z.number().int().min(1).max(65_535),
    }),
    controlDatabase: z.object({
      name: z.literal('console'),
      port: z.number().int().min(1).max(65_535),
      url: z.null(),
    }),
    startCrashed: z.boolean().optional(),
    webhookAddresses: z.array(z.string().max(100)).max(1_000).optional(),
    trustedProxies: z.array(z.string().max(100)).max(1_000).optional(),
  }),
)
export type BackedUpConfiguration = z.infer<typeof BackedUpConfiguration>
