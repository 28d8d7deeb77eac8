import { z } from 'zod'
import { EngineBuild } from './engine-build'
import { fault } from './fault'

/** How far a host's agent can be believed: by the age of its last answer, not by the last word it said. */
export const HostState = z.enum(['online', 'stale', 'offline', 'unknown'])
export type HostState = z.infer<typeof HostState>

/** A host is stale after 5 s without an answer and offline after 30 s. */
export const HOST_STALE_MS = 5_000
export const HOST_OFFLINE_MS = 30_000

/** State by age. `null` means that it never answered. */
export function hostStateByAge(ageMs: number | null): HostState {
  if (ageMs === null) return 'unknown'
  if (ageMs >= HOST_OFFLINE_MS) return 'offline'
  return ageMs >= HOST_STALE_MS ? 'stale' : 'online'
}

/**
 * The state that everybody shows: by age, but a host that was revoked is unknown at once, since nothing it says is
 * believed any more.
 */
export function hostState(host: { ageMs: number | null; revoked: boolean }): HostState {
  return host.revoked ? 'unknown' : hostStateByAge(host.ageMs)
}

/** What a person calls a host: also a word in commands. */
export const HostName = z
  .string()
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$/,
    'must consist of letters, digits, hyphens and dots, and begin and end with a letter or digit (at most 63)',
  )
export type HostName = z.infer<typeof HostName>

/** How far a token for enrolling a host has come. `expired`, `failed` and `withdrawn` leave nothing behind. */
export const EnrolmentState = z.enum(['waiting', 'signing', 'enrolled', 'failed', 'expired', 'withdrawn'])
export type EnrolmentState = z.infer<typeof EnrolmentState>

export const Disk = z.object({
  mount: z.string(),
  device: z.string(),
  fileSystem: z.string(),
  options: z.string(),
  sizeBytes: z.number(),
  freeBytes: z.number(),
  nvme: z.boolean(),
  /** Name of the whole disk below it, as below /sys/block; null: none. Since contract 1.20, as what follows. */
  disk: z.string().max(64).nullish(),
  /** What the whole disk reads and writes per second, by whomever; null: not known. */
  readBytes: z.number().nonnegative().nullish(),
  writeBytes: z.number().nonnegative().nullish(),
  /** Share of the time in which the whole disk had something to do, and its requests at once on average. Since contract 1.24. */
  busy: z.number().nonnegative().nullish(),
  queue: z.number().nonnegative().nullish(),
  /** Whether the instances' directory lies on it. */
  holdsInstances: z.boolean().optional(),
})
export type Disk = z.infer<typeof Disk>

/** Made by root on a host that takes packages from its console; without it none is received or installed. */
export const PACKAGES_ACCEPTED = '/etc/floe/accept-packages'

/** Floe's packages of a host, as dpkg has them. */
export const HostPackages = z.object({
  /** Of which distribution the host is, as packages name it, e.g. `debian-12`. */
  distribution: z.string().max(100),
  /** As dpkg names it, e.g. `amd64`. */
  architecture: z.string().max(32),
  /** Whether root of the host takes packages from the console: there is a file PACKAGES_ACCEPTED. */
  accepted: z.boolean(),
  /** The agent first, then the engine and its builds. */
  installed: z
    .array(
      z.object({
        name: z.string().max(200),
        version: z.string().max(200),
        /** As dpkg says it: `installed` where all is well. */
        status: z.string().max(32),
      }),
    )
    .max(100),
})
export type HostPackages = z.infer<typeof HostPackages>

export const HostFacts = z.object({
  hostName: z.string(),
  operatingSystem: z.string(),
  kernel: z.string(),
  architecture: z.string(),
  cpus: z.number().int(),
  /** Processor time that all of the machine used, in cores, lately; null: not known. Since contract 1.20. */
  cpuBusy: z.number().nonnegative().nullish(),
  /** Share of the time in which some process of the machine waited for storage, lately; null: not known. Since contract 1.24. */
  ioWait: z.number().nonnegative().nullish(),
  memoryBytes: z.number(),
  memoryAvailableBytes: z.number(),
  loadAverage1: z.number(),
  uptimeSeconds: z.number(),
  supervision: z.enum(['systemd', 'detached']),
  /** Free ports of the instance range and its ends. */
  instancePorts: z.object({ from: z.number().int(), to: z.number().int(), used: z.number().int() }),
  disks: z.array(Disk),
  /** Whether each instance has a user of its own; where not, the host is one trust domain. */
  separateUsers: z.boolean().optional(),
  /** The installed build of the engine, which new instances get. Since contract 1.25. */
  engineBuild: EngineBuild.optional(),
  /** Where its Floe was installed from packages: which ones. Since contract 1.26. */
  packages: HostPackages.optional(),
})
export type HostFacts = z.infer<typeof HostFacts>

/** The version of the installed package of the agent; undefined where it is not from a package, or is not known. */
export const agentPackageOf = (facts: HostFacts | null): string | undefined =>
  facts?.packages?.installed.find(({ name }) => name === 'floe-agent')?.version

/** Where a host's agent answers, and which of its certificates are not accepted any more. */
export type AgentAddress = {
  hostId: string
  hostName: string
  agentUrl: string
  /** Nothing it answers is believed. */
  revoked: boolean
  /** sha256 of the revoked certificates whose time is not over, in hexadecimal. */
  revokedCertificates: string[]
}

/** Said of a host that was revoked, wherever something was wanted of it. */
export const hostRevoked = (name: string) =>
  fault('host.revoked', `host "${name}" was revoked`, {
    detail: 'Its certificate and its reports are no longer accepted.',
    hint: `Enrol it again with "./floe host add ${name} --again", or remove it.`,
  })
