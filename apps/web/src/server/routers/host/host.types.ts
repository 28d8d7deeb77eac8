import {
  ENROLMENT_MINUTES,
  ENROLMENT_MINUTES_MAX,
  EngineBuild,
  EnrolmentState,
  Fault,
  HostCheck,
  HostFacts,
  HostId,
  HostName,
  HostPackageList,
  HostState,
  HostUpgrade,
  HostUpgradePlan,
  hostResources,
  InstanceEngine,
  InstanceId,
  InstanceLimits,
  InstanceName,
  InstanceState,
  LimitSum,
  PACKAGE_BYTES_MAX,
  PACKAGE_PIECE_BYTES,
  PackageDigest,
  PowerSupply,
} from '@floe/domain'
import { z } from 'zod'

export const HostSummary = z.object({
  hostId: HostId,
  name: z.string(),
  agentUrl: z.string(),
  /** True for the console's own machine, which needs no token and cannot be revoked. */
  own: z.boolean(),
  /** By the age of the agent's last answer; unknown once it is revoked. */
  state: HostState,
  observedAt: z.number().nullable(),
  ageMs: z.number().nullable(),
  agentVersion: z.string().nullable(),
  contractVersion: z.string().nullable(),
  capabilities: z.array(z.string()),
  facts: HostFacts.nullable(),
  /** Why its agent could not be reached, where it could not. */
  fault: Fault.nullable(),
  instances: z.number().int(),
  /** Names of its instances that share a user with others although it could separate them. */
  sharedUser: z.array(z.string()),
  /** When it was enrolled by a token; null for the console's own machine. */
  enrolledAt: z.number().nullable(),
  /** From then on nothing it answers is believed. */
  revokedAt: z.number().nullable(),
  revokedBy: z.string().nullable(),
  /** As a person named it: hosts with the same one fail together. null while nobody has. */
  powerSupply: z.string().nullable(),
  /** When its agent's certificate ends; it is renewed long before. null until a controller has issued one. */
  certificateEndsAt: z.number().nullable(),
})
export type HostSummary = z.infer<typeof HostSummary>

/** A one-time token that was given out: for a new host, or one that is enrolled again. */
export const EnrolmentSummary = z.object({
  enrolmentId: z.uuid(),
  hostId: HostId,
  name: z.string(),
  state: EnrolmentState,
  /** Who asked for it. */
  actorName: z.string(),
  createdAt: z.number(),
  expiresAt: z.number(),
  agentUrl: z.string().nullable(),
  fault: Fault.nullable(),
})
export type EnrolmentSummary = z.infer<typeof EnrolmentSummary>

export const HostAddInput = z.object({
  name: HostName,
  /** Enrols an existing host again: after it was revoked, or away for longer than its certificate was valid. */
  again: z.boolean().default(false),
  /** How long the token is good. */
  minutes: z.number().int().min(1).max(ENROLMENT_MINUTES_MAX).default(ENROLMENT_MINUTES),
})
export const HostAdd = z.object({
  enrolmentId: z.uuid(),
  hostId: HostId,
  name: HostName,
  /** Made for this answer and stored nowhere; good for one host. */
  token: z.string(),
  expiresAt: z.number(),
  /** sha256 of the installation's authority, by which the host knows that it speaks to this console. */
  authority: z.string(),
  /** What has to be run on the host, in a checkout of Floe. */
  command: z.string(),
  /** True when the console's address is one that only its own machine reaches. */
  onlyLocal: z.boolean(),
})
export type HostAdd = z.infer<typeof HostAdd>

export const HostList = z.object({
  hosts: z.array(HostSummary),
  /** Tokens that are waited for, or that came to nothing within the last hour. */
  enrolments: z.array(EnrolmentSummary),
  now: z.number(),
})

/** `confirmName`: the host's name, typed once more. */
export const HostRevokeInput = z.object({ hostId: HostId, confirmName: z.string().max(100) })
export const HostRemoveInput = HostRevokeInput
/** null: not known. */
export const HostPowerSupplyInput = z.object({ hostId: HostId, powerSupply: PowerSupply.nullable() })
export const HostPowerSupply = z.object({
  hostId: HostId,
  name: z.string(),
  powerSupply: z.string().nullable(),
})
export const HostRevoke = z.object({ hostId: HostId, name: z.string() })
export const HostRemove = HostRevoke.extend({
  /** How many instances the console forgot with it. */
  instances: z.number().int(),
})
export const EnrolmentWithdrawInput = z.object({ enrolmentId: z.uuid() })

export const HostCheckInput = z.object({ hostId: HostId })
/** What is known of the machine by its checks: the last that returned a result, and why a later one did not. */
export const HostCheckShown = z.object({
  last: z.object({ at: z.number(), actorName: z.string(), check: HostCheck }).nullable(),
  failed: z.object({ at: z.number(), actorName: z.string(), fault: Fault }).nullable(),
  openSince: z.number().nullable(),
})
export type HostCheckShown = z.infer<typeof HostCheckShown>

export const HostUpgradePlanInput = z.object({
  hostId: HostId,
  /** Names of clusters that would be left out. */
  except: z.array(InstanceName).max(1_000).default([]),
  /** What would be brought to the host first. */
  packages: HostPackageList.optional(),
  /** Whether an earlier version than the installed one may be among them. */
  downgrade: z.boolean().default(false),
})
export const HostPackagePiece = z.object({
  /** Of the whole package. */
  digest: PackageDigest,
  number: z
    .number()
    .int()
    .min(0)
    .max(Math.ceil(PACKAGE_BYTES_MAX / PACKAGE_PIECE_BYTES) - 1),
  /** In base64. */
  data: z.base64().max(Math.ceil(PACKAGE_PIECE_BYTES / 3) * 4),
})
export const HostPackagePieceStored = z.object({ stored: z.boolean() })
export const HostCancelUpgradeInput = z.object({ hostId: HostId })
export const HostUpgradePlanView = z.object({
  plan: HostUpgradePlan,
  /** The newest that was asked for; null where there was none. */
  last: HostUpgrade.nullable(),
  now: z.number(),
})
export type HostUpgradePlanView = z.infer<typeof HostUpgradePlanView>
export const HostUpgradeInput = z.object({
  hostId: HostId,
  /** The installed engine of the plan that was read. */
  build: EngineBuild,
  /** The host's name, typed once more. */
  confirmName: z.string().max(100),
  /** Switches over again after each cluster whose primary was on this host, so that it is there once more. */
  switchBack: z.boolean().default(false),
  /** Names of clusters that are left out. */
  except: z.array(InstanceName).max(1_000).default([]),
})
/** What `host.upgrade` is asked with, and the packages that are brought first. */
export const HostUpgradeWithPackagesInput = HostUpgradeInput.extend({
  packages: HostPackageList,
  downgrade: z.boolean().default(false),
})
export const HostUpgradeAsked = z.object({
  upgradeId: z.uuid(),
  /** False where it was asked for before and has not ended. */
  created: z.boolean(),
})
export const HostCancelUpgrade = z.object({ upgradeId: z.uuid() })

export const HostShowInput = z.union([z.object({ hostId: HostId }), z.object({ name: HostName })])
export const HostDetail = z.object({
  host: HostSummary,
  check: HostCheckShown,
  /** Its instances by name, as last observed. */
  instanceList: z.array(
    z.object({
      instanceId: InstanceId,
      name: z.string(),
      /** `unknown` when the last report is too old, or its host was revoked; `lastState` is what that report said. */
      state: InstanceState,
      lastState: InstanceState,
      role: z.string().nullable(),
      port: z.number().int().nullable(),
      engineVersion: z.string().nullable(),
      /** Of which build its engine is; null where its agent does not report that. */
      engine: InstanceEngine.nullable(),
      observedAt: z.number().nullable(),
    }),
  ),
  now: z.number(),
})
export type HostDetail = z.infer<typeof HostDetail>

export const HostMapInput = z.object({ hostId: HostId })
const Amount = z.number().nullable()
/** Who uses how much of a host now, in parts that add up. What is not known is null. */
export const HostMapView = z.object({
  /** When its agent said last what the host has and uses; null: never. */
  observedAt: z.number().nullable(),
  resources: z.array(
    z.object({
      resource: z.enum(hostResources),
      of: z.string().nullable(),
      size: Amount,
      /** In the order of `instances`. */
      used: z.array(Amount),
      others: Amount,
      left: Amount,
      unknown: z.number().int(),
    }),
  ),
  instances: z.array(
    z.object({
      instanceId: InstanceId,
      name: z.string(),
      state: InstanceState,
      limits: InstanceLimits,
      /** Age of the sample that it goes by; null where there is none of now. */
      sampleAt: z.number().nullable(),
    }),
  ),
  /** Whether its kernel has a high limit of memory, as far as its agent reported. */
  memoryHigh: z.boolean(),
  /** What all instances may use together; empty while the host's size is not known. */
  sums: z.array(LimitSum),
  /** How busy its disks are, and whether somebody waits for storage, as sentences; none while nothing is known of now. */
  diskUse: z.array(z.string()),
  pressures: z.array(z.object({ title: z.string(), detail: z.string(), hint: z.string().nullable() })),
  now: z.number(),
})
export type HostMapView = z.infer<typeof HostMapView>
