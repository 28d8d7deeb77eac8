import { z } from 'zod'

/** How bad an incident is: critical where something is down, waits or may be lost, warning where it may come to that. */
export const IncidentSeverity = z.enum(['critical', 'warning'])
export type IncidentSeverity = z.infer<typeof IncidentSeverity>

/** An incident is open as long as its cause lasts; nobody resolves one by hand. `closed` is the stored word for resolved. */
export const IncidentState = z.enum(['open', 'closed'])
export type IncidentState = z.infer<typeof IncidentState>

/** Who opens and closes incidents: what observes a host, what observes clusters, an operation's step, what settles restored records. */
type IncidentOpener = 'host lane' | 'cluster watch' | 'step' | 'restored records'

type IncidentKindFacts = {
  /** The usual severity; an incident may set another one. */
  severity: IncidentSeverity
  /** What the ids of its key are, in order. They may hold colons in the last one only. */
  about: readonly [string, ...string[]]
  /** The page of the console where it is dealt with; of an instance the page below its own. */
  page:
    | 'host'
    | 'operation'
    | 'instance'
    | 'instance/settings'
    | 'instance/flashback'
    | 'instance/connections'
    | 'instance/replication'
    | 'instance/replication/takeover'
  /** The button the console offers, left out where a person has to find out first; `dialog` is what it asks. */
  action?: { label: string; dialog?: 'rejoin' | 'accept-restored' }
  /** It is opened when its cause has lasted for this long: what ends soon needs nobody. */
  graceMs?: number
  /** The same by the time at which the engine says that it began, which only what derives it knows and compares. */
  engineGraceMs?: number
  /** Operations cause it for a moment by their nature, so that none is opened while one owns the cluster. */
  duringOperations?: 'not opened'
  /** What the member is meant to be decides it, so that it stays open while the cluster's record is in doubt. */
  whileInDoubt?: 'stays open'
} & (
  | {
      openedBy: 'host lane' | 'cluster watch'
      /** Why it was closed, as a sentence. */
      resolved: string
    }
  // these say themselves why, with the step or the person's name
  | { openedBy: 'step' | 'restored records' }
)

/** Every kind of incident there is. How one is added: docs/checklists/add-incident.md. */
export const incidentKinds = {
  'host-offline': {
    severity: 'critical',
    openedBy: 'host lane',
    about: ['hostId'],
    page: 'host',
    resolved: 'The host answers again.',
  },
  'host-clock': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['hostId'],
    page: 'host',
    resolved: 'A difference between the clocks is no longer measured.',
  },
  'disk-low': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['hostId', 'mount'],
    page: 'host',
    resolved: 'The file system has enough free space, or is no longer reported.',
  },
  'agent-problem': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['hostId', 'problem'],
    page: 'host',
    resolved: 'The agent no longer reports the problem.',
  },
  'instance-crashed': {
    severity: 'critical',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance',
    resolved: 'The instance is no longer reported as crashed.',
  },
  // an engine that ends removes its postmaster.pid a moment before
  'instance-processes': {
    severity: 'critical',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance',
    graceMs: 3_000,
    resolved: 'The agent no longer reports a problem with the processes.',
  },
  'instance-missing': {
    severity: 'critical',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance',
    action: { label: 'Adopt' },
    resolved: 'The agent reports the instance again, or an operation on it is in progress.',
  },
  'instance-left': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'host',
    resolved: 'The host no longer reports the instance.',
  },
  'instance-unregistered': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'host',
    resolved: 'The instance was adopted, or the host no longer reports it.',
  },
  'second-primary': {
    severity: 'critical',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance/replication',
    duringOperations: 'not opened',
    resolved: 'The instance no longer accepts writes, or is its cluster’s primary.',
  },
  // of a cluster with standbys; its instance is the one that is meant to be the primary
  'no-primary': {
    severity: 'critical',
    openedBy: 'cluster watch',
    about: ['clusterId'],
    page: 'instance/replication/takeover',
    action: { label: 'Fail over' },
    graceMs: 10_000,
    resolved: 'A primary is reported to run.',
  },
  'standby-not-streaming': {
    severity: 'warning',
    openedBy: 'cluster watch',
    about: ['instanceId'],
    page: 'instance/replication',
    action: { label: 'Rejoin', dialog: 'rejoin' },
    graceMs: 15_000,
    duringOperations: 'not opened',
    whileInDoubt: 'stays open',
    resolved: 'The standby streams, or is no longer a standby.',
  },
  // it may hold what nobody else does
  diverged: {
    severity: 'critical',
    openedBy: 'cluster watch',
    about: ['instanceId'],
    page: 'instance/replication',
    action: { label: 'Rejoin', dialog: 'rejoin' },
    graceMs: 5_000,
    duringOperations: 'not opened',
    whileInDoubt: 'stays open',
    resolved: 'The standby follows the history of its cluster, or is no longer reported as a standby.',
  },
  'fence-waits': {
    severity: 'critical',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance/replication',
    resolved: 'The instance is fenced, no longer has to be fenced, or is no longer reported.',
  },
  'commits-wait': {
    severity: 'critical',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance/replication',
    // after a start its standbys connect again within seconds
    graceMs: 10_000,
    duringOperations: 'not opened',
    resolved: 'Enough synchronous standbys are connected, or the instance is no longer a running primary.',
  },
  'slot-unused': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['instanceId', 'slot'],
    page: 'instance/replication',
    duringOperations: 'not opened',
    resolved: 'The slot is used, retains little WAL or was dropped, or the instance is not running.',
  },
  'memory-near-limit': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance',
    resolved: 'Its memory is no longer near the limit, or it has none any more.',
  },
  // a kill is over at once: it is reported for an hour
  'memory-kill': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance',
    resolved: 'For an hour the kernel killed none of its processes for want of memory.',
  },
  'setting-drift': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance/settings',
    // the agent checks the files every 2 s: what an operation wrote may be reported for a moment after its end
    graceMs: 5_000,
    duringOperations: 'not opened',
    resolved: 'Configuration drift is no longer reported.',
  },
  'page-unprotected': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance',
    // as long as polar_page_repair_grace by default
    engineGraceMs: 10_000,
    duringOperations: 'not opened',
    resolved: 'The engine no longer reports its pages as unprotected.',
  },
  'page-guard-off': {
    severity: 'critical',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance',
    resolved: 'The guard is on, full-page images are written, or the instance is not running.',
  },
  // the engine starts another one a second after it ended
  'shared-server-down': {
    severity: 'critical',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance/connections',
    graceMs: 10_000,
    duringOperations: 'not opened',
    resolved: 'Every dispatcher answers, the instance has no shared port any more, or it is not running.',
  },
  'flashback-window-ended': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance/flashback',
    resolved: 'The flashback log has lost no moment for an hour, is off, or the instance is not running.',
  },
  // a window begins with the first complete checkpoint
  'flashback-log-waiting': {
    severity: 'warning',
    openedBy: 'host lane',
    about: ['instanceId'],
    page: 'instance/flashback',
    graceMs: 1_800_000,
    duringOperations: 'not opened',
    resolved: 'The flashback log has a window, is off, or the instance is not running.',
  },
  // its id is "all" where all of the control database is in doubt
  'control-database-restored': {
    severity: 'critical',
    openedBy: 'restored records',
    about: ['clusterId'],
    page: 'instance/replication',
    action: { label: 'Accept', dialog: 'accept-restored' },
  },
  'operation-step': {
    severity: 'warning',
    openedBy: 'step',
    about: ['operationId', 'step'],
    page: 'operation',
  },
} as const satisfies Record<string, IncidentKindFacts>

export type IncidentKind = keyof typeof incidentKinds

/** The kinds that one of those opens who open incidents. */
export type IncidentKindOpenedBy<By extends IncidentOpener> = {
  [K in IncidentKind]: (typeof incidentKinds)[K]['openedBy'] extends By ? K : never
}[IncidentKind]

/** Names the cause of an incident: its kind and what it is about. As long as the cause lasts it is one incident. */
export type IncidentKey<K extends IncidentKind = IncidentKind> = `${K}:${string}`

/** The ids of a key, as many as its kind names. */
type IncidentAbout<K extends IncidentKind> = Ids<(typeof incidentKinds)[K]['about']>
type Ids<Names extends readonly string[]> = { readonly [I in keyof Names]: string }

export const incidentKey = <K extends IncidentKind>(kind: K, ...ids: IncidentAbout<K>): IncidentKey<K> =>
  `${kind}:${ids.join(':')}`

/**
 * Inverse of incidentKey(), with what is known of the kind; undefined for a kind that only an earlier version had.
 */
export function incidentKindOf(
  key: string,
): (IncidentKindFacts & { kind: IncidentKind; ids: readonly string[] }) | undefined {
  const [kind, ...parts] = key.split(':') as [IncidentKind, ...string[]]
  if (!Object.hasOwn(incidentKinds, kind)) return undefined
  const last = incidentKinds[kind].about.length - 1
  return { ...incidentKinds[kind], kind, ids: [...parts.slice(0, last), parts.slice(last).join(':')] }
}

/** The kinds that one of those opens who open incidents. */
export const incidentKindsOpenedBy = (by: IncidentOpener): IncidentKind[] =>
  (Object.keys(incidentKinds) as IncidentKind[]).filter((kind) => incidentKinds[kind].openedBy === by)

/** What is written of an open incident. */
export type IncidentReport<K extends IncidentKind = IncidentKind> = {
  key: IncidentKey<K>
  severity: IncidentSeverity
  title: string
  detail?: string | null | undefined
  hint?: string | null | undefined
  hostId?: string | null | undefined
  instanceId?: string | null | undefined
  operationId?: string | null | undefined
}

/** An incident with the key and, unless `words` has another, the severity of its kind; `about`: the ids of the key. */
export const incident = <K extends IncidentKind>(
  kind: K,
  about: IncidentAbout<K>,
  words: Omit<IncidentReport, 'key' | 'severity'> & Partial<Pick<IncidentReport, 'severity'>>,
): IncidentReport<K> => ({
  key: incidentKey(kind, ...about),
  severity: incidentKinds[kind].severity,
  ...words,
})
