import { z } from 'zod'

/** How bad an incident is: critical where something is down, waits or may be lost, warning where it may come to that. */
export const IncidentSeverity = z.enum(['critical', 'warning'])
export type IncidentSeverity = z.infer<typeof IncidentSeverity>

/** An incident is open as long as its cause lasts; nobody closes one by hand. */
export const IncidentState = z.enum(['open', 'closed'])
export type IncidentState = z.infer<typeof IncidentState>

type IncidentKindFacts = {
  /** As bad as it usually is; an incident may say otherwise of itself. */
  severity: IncidentSeverity
  /** Who opens and closes it: the lane that observes a host, the watch over clusters, the step of an operation, or the loop of restored records. */
  openedBy: 'host lane' | 'cluster watch' | 'step' | 'restored records'
  /** The page of the console where it is dealt with; of an instance the page below its own. */
  page:
    | 'host'
    | 'operation'
    | 'instance'
    | 'instance/settings'
    | 'instance/replication'
    | 'instance/replication/takeover'
  /** What there is to do on that page, as its button says it; left out where a person has to find out first. */
  act?: string
  /** It is opened when it has lasted for this long: what ends by itself needs nobody. */
  graceMs?: number
  /** Operations bring it about for a moment by their nature, so that none is opened while one owns the cluster. */
  duringOperations?: 'not opened'
}

/** Every kind of incident there is. */
export const incidentKinds = {
  'host-offline': { severity: 'critical', openedBy: 'host lane', page: 'host' },
  'host-clock': { severity: 'warning', openedBy: 'host lane', page: 'host' },
  'disk-low': { severity: 'warning', openedBy: 'host lane', page: 'host' },
  'agent-problem': { severity: 'warning', openedBy: 'host lane', page: 'host' },
  'instance-crashed': { severity: 'critical', openedBy: 'host lane', page: 'instance' },
  // an engine that ends removes its postmaster.pid a moment before
  'instance-processes': { severity: 'critical', openedBy: 'host lane', page: 'instance', graceMs: 3_000 },
  'instance-missing': { severity: 'critical', openedBy: 'host lane', page: 'instance', act: 'Adopt' },
  'instance-left': { severity: 'warning', openedBy: 'host lane', page: 'host' },
  'instance-unregistered': { severity: 'warning', openedBy: 'host lane', page: 'host' },
  'second-primary': {
    severity: 'critical',
    openedBy: 'host lane',
    page: 'instance/replication',
    duringOperations: 'not opened',
  },
  // of a cluster with standbys; its instance is the one that is meant to be the primary
  'no-primary': {
    severity: 'critical',
    openedBy: 'cluster watch',
    page: 'instance/replication/takeover',
    act: 'Fail over',
    graceMs: 10_000,
  },
  'standby-not-streaming': {
    severity: 'warning',
    openedBy: 'cluster watch',
    page: 'instance/replication',
    act: 'Rejoin',
    graceMs: 15_000,
    duringOperations: 'not opened',
  },
  // it may hold what nobody else does
  diverged: {
    severity: 'critical',
    openedBy: 'cluster watch',
    page: 'instance/replication',
    act: 'Rejoin',
    graceMs: 5_000,
    duringOperations: 'not opened',
  },
  'fence-waits': { severity: 'critical', openedBy: 'host lane', page: 'instance/replication' },
  'commits-wait': {
    severity: 'critical',
    openedBy: 'host lane',
    page: 'instance/replication',
    // after a start its standbys connect again within seconds
    graceMs: 10_000,
    duringOperations: 'not opened',
  },
  'slot-unused': {
    severity: 'warning',
    openedBy: 'host lane',
    page: 'instance/replication',
    duringOperations: 'not opened',
  },
  'setting-drift': {
    severity: 'warning',
    openedBy: 'host lane',
    page: 'instance/settings',
    // the agent looks at the files every 2 s: what an operation wrote may be told for a moment after its end
    graceMs: 5_000,
    duringOperations: 'not opened',
  },
  'page-unprotected': { severity: 'warning', openedBy: 'host lane', page: 'instance' },
  'page-guard-off': { severity: 'critical', openedBy: 'host lane', page: 'instance' },
  'control-database-restored': {
    severity: 'critical',
    openedBy: 'restored records',
    page: 'instance/replication',
  },
  'operation-step': { severity: 'warning', openedBy: 'step', page: 'operation' },
} as const satisfies Record<string, IncidentKindFacts>

export type IncidentKind = keyof typeof incidentKinds

/** Names the cause of an incident: its kind and what it is about. As long as the cause lasts it is one incident. */
export type IncidentKey = `${IncidentKind}:${string}`

export const incidentKey = <K extends IncidentKind>(kind: K, ...ids: [string, ...string[]]) =>
  `${kind}:${ids.join(':')}` as const

/** What is known of the kind of a key; undefined for a kind that an earlier version had. */
export function incidentKindOf(key: string): (IncidentKindFacts & { kind: IncidentKind }) | undefined {
  const kind = key.slice(0, key.indexOf(':')) as IncidentKind
  return Object.hasOwn(incidentKinds, kind) ? { ...incidentKinds[kind], kind } : undefined
}
