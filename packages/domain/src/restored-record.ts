import { z } from 'zod'
import { type FaultError, fault } from './fault'
import { HostId, InstanceId } from './ids'

/** How it is known that the control database, or what it holds of a cluster, is older than what it is about. */
export const RestoredEvidence = z.discriminatedUnion('kind', [
  /** "./floe console restore" put it in place. */
  z.object({
    kind: z.literal('restored'),
    /** When the backup was made, ms since the epoch. */
    backupAt: z.number(),
  }),
  /** An agent was informed of a promotion that is not recorded. */
  z.object({
    kind: z.literal('newer-primary'),
    hostId: HostId,
    hostName: z.string(),
    instanceId: InstanceId,
    /** The primary of the newest timeline that the agent was informed of; its name is null where it is no member. */
    primary: InstanceId,
    primaryName: z.string().nullable(),
    timeline: z.number().int(),
    /** 0 where none is recorded. */
    recordedTimeline: z.number().int(),
    recordedPrimaryName: z.string(),
  }),
])
export type RestoredEvidence = z.infer<typeof RestoredEvidence>

/**
 * What a person decides. `reported`: the record is brought up to what members report, which has to be proven. `recorded`: the
 * record counts, and what was reported so far does not.
 */
export const RestoredAccepted = z.enum(['reported', 'recorded'])
export type RestoredAccepted = z.infer<typeof RestoredAccepted>

/** What is in doubt: one cluster, or all of the control database (`clusterName` null). */
export type InDoubt = { clusterName: string | null; evidence: RestoredEvidence | null }

/** What is known of it, as sentences. */
export function describeEvidence(evidence: RestoredEvidence | null): string {
  if (evidence === null) return 'The evidence cannot be read.'
  if (evidence.kind === 'restored')
    return `It was restored from a backup of ${new Date(evidence.backupAt).toISOString().slice(0, 19)}Z. It lacks all later changes.`
  const { hostName, primaryName, timeline, recordedTimeline, recordedPrimaryName } = evidence
  return `According to the agent of host "${hostName}", ${primaryName === null ? 'an instance that is no member' : `"${primaryName}"`} is the primary on timeline ${timeline}; recorded is "${recordedPrimaryName}"${recordedTimeline === 0 ? '' : ` on timeline ${recordedTimeline}`}.`
}

/** The code of readOnlyFault(). */
export const READ_ONLY = 'control_database.read_only'

/** Why an operation is refused as long as nobody has decided. */
export const readOnlyFault = ({ clusterName, evidence }: InDoubt): FaultError =>
  fault(
    READ_ONLY,
    clusterName === null
      ? 'the control database was restored: the console is read-only'
      : `the record of cluster "${clusterName}" is older than the cluster: the cluster is read-only`,
    {
      detail: describeEvidence(evidence),
      hint: 'An admin or owner has to read the incident and decide: "./floe console accept-restored".',
    },
  )
