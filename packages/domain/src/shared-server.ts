import { z } from 'zod'
import { type ConnectionForms, type ConnectionTarget, connectionForms } from './connection'
import { type RemoteAccess, requiresTls } from './remote-access'

/** The engine allows so many (`polar_ss_dispatcher_count`). */
export const DISPATCHERS_MAX = 16

/**
 * Of a dispatcher, which says which worker serves which session; the first also accepts the clients of `polar_ss_port`. Absent:
 * the engine says that it has none; stopped: its process is there, and a signal keeps it from doing anything.
 */
export const DispatcherState = z.enum(['running', 'stopped', 'absent'])
export type DispatcherState = z.infer<typeof DispatcherState>

/** One of the dispatchers that `polar_ss_dispatcher_count` asks for. */
export const DispatcherSeen = z.object({
  /** From 1. */
  number: z.number().int(),
  state: DispatcherState,
  /** Whether it does anything (`polar_stat_dispatcher.last_active`); null: not known. */
  active: z.boolean().nullable(),
  /** The same of its TLS relay; null also where there is none. */
  relayActive: z.boolean().nullable(),
})
export type DispatcherSeen = z.infer<typeof DispatcherSeen>

/** Whether sessions of an instance share backends, as it runs now. */
export const SharedServerSeen = z.object({
  /** `polar_ss_port`; null: 0, so that nothing of Shared Server exists in this instance. */
  port: z.number().int().nullable(),
  /** `polar_enable_shared_server`: off, who logs in keeps a backend alone. */
  enabled: z.boolean(),
  /** The worst of all dispatchers; null where there is no port. */
  dispatcher: DispatcherState.nullable(),
  /** By number. Left out by agents before contract 1.28, and where version 1.0 of the extension shows all as one. */
  dispatchers: z.array(DispatcherSeen).max(DISPATCHERS_MAX).optional(),
  /** `polar_ss_share_tls`: clients that use TLS share backends as well. Left out by agents before contract 1.26. */
  sharesTls: z.boolean().optional(),
})
export type SharedServerSeen = z.infer<typeof SharedServerSeen>

/** Sessions and workers at one moment (`polar_stat_dispatcher`); what is counted counts since the instance started. */
export const SharedServerCounts = z.object({
  /** ms since the epoch: when the dispatcher began. */
  since: z.number(),
  /** Sessions by mode. Native ones are backends of clients at either port. */
  shared: z.number().int(),
  dedicated: z.number().int(),
  native: z.number().int(),
  /** Sessions that are not native, by state. */
  login: z.number().int(),
  bound: z.number().int(),
  parked: z.number().int(),
  waiting: z.number().int(),
  workers: z.number().int(),
  freeWorkers: z.number().int(),
  pools: z.number().int(),
  transactions: z.number(),
  /** Sessions that waited for `polar_ss_session_wait_timeout` and were ended. */
  timeouts: z.number(),
  /** Waits for a worker, ms; null before anybody waited. */
  waitP50Ms: z.number().nullable(),
  waitP99Ms: z.number().nullable(),
  /** What sessions take along, in bytes. */
  memoryBytes: z.number(),
})
export type SharedServerCounts = z.infer<typeof SharedServerCounts>

/** Sessions that are pinned for one reason (`polar_stat_session.pinned_by`). */
export const PinnedSessions = z.object({ reason: z.string().max(200), sessions: z.number().int() })
export type PinnedSessions = z.infer<typeof PinnedSessions>

/** Sessions of a dispatcher that may use the same workers (`polar_stat_worker_pool`). */
export const WorkerPool = z.object({
  database: z.string(),
  user: z.string(),
  /** Whose it is. Null for version 1.0 of the extension; left out by agents before contract 1.28. */
  dispatcher: z.number().int().nullish(),
  sessions: z.number().int(),
  workers: z.number().int(),
  freeWorkers: z.number().int(),
  waiting: z.number().int(),
  dedicated: z.number().int(),
  transactions: z.number(),
  /** How often a session got a worker, and how long that took on average, ms; null where none did. */
  binds: z.number(),
  meanWaitMs: z.number().nullable(),
})
export type WorkerPool = z.infer<typeof WorkerPool>

/** The engine shows this many pools, and the agent this many reasons: those with the most sessions. */
export const WORKER_POOLS_MAX = 128
export const PINNED_REASONS_MAX = 20

/** Shared Server of an instance, asked of it at one moment. */
export const SharedServer = SharedServerSeen.extend({
  /** `ssl` without `polar_ss_share_tls`: clients that use TLS are native. */
  tls: z.boolean(),
  /** Most workers of all pools together that `polar_ss_backend_max_count` and `max_connections` allow. */
  workersMax: z.number().int(),
  /** `polar_ss_max_sessions` */
  sessionsMax: z.number().int(),
  /** `polar_ss_shared_memory_size`, in bytes. */
  memoryMaxBytes: z.number(),
  /** Null where no dispatcher says anything. */
  counts: SharedServerCounts.nullable(),
  /** Why sessions are pinned, the most frequent reason first. */
  pinned: z.array(PinnedSessions).max(PINNED_REASONS_MAX),
  /** By number of sessions, the largest first. */
  pools: z.array(WorkerPool).max(WORKER_POOLS_MAX),
})
export type SharedServer = z.infer<typeof SharedServer>

/**
 * off: there is no port; native: there is one, and who logs in there keeps a backend alone; on: sessions share backends;
 * down: there is a port and no dispatcher that answers.
 */
export type SharedServerState = 'off' | 'native' | 'on' | 'down'

export function sharedServerState(seen: SharedServerSeen): SharedServerState {
  if (seen.port === null) return 'off'
  const first = seen.dispatchers?.find((d) => d.number === 1)
  if (first ? !works(first) : seen.dispatcher !== 'running') return 'down'
  return seen.enabled ? 'on' : 'native'
}

const works = ({ state, active }: DispatcherSeen) => state === 'running' && active !== false

/** A dispatcher that does not do its work, or whose TLS relay does not, and what is wrong with it. */
export type DispatcherFault = { number: number; what: 'absent' | 'stopped' | 'inactive' | 'relay inactive' }

/** Which dispatchers do not do their work, as far as that is known; of an agent that knows of one only, the first. */
export function dispatcherFaults({ port, dispatcher, dispatchers }: SharedServerSeen): DispatcherFault[] {
  if (port === null) return []
  const seen = dispatchers ?? [
    { number: 1, state: dispatcher ?? ('absent' as const), active: null, relayActive: null },
  ]
  return seen.flatMap(({ number, state, active, relayActive }): DispatcherFault[] => {
    if (state !== 'running') return [{ number, what: state }]
    if (active === false) return [{ number, what: 'inactive' }]
    return relayActive === false ? [{ number, what: 'relay inactive' }] : []
  })
}

const faultWords: Record<DispatcherFault['what'], (who: string) => string> = {
  absent: (who) => `The engine has no ${who}`,
  stopped: (who) => `The ${who} is stopped by a signal`,
  inactive: (who) => `The ${who} runs and does nothing`,
  'relay inactive': (who) => `The TLS relay of the ${who} runs and does nothing`,
}

/** What a person reads of it, each a sentence without its full stop: `The dispatcher 2 of 3 is stopped by a signal`. */
export function dispatcherFaultWords(seen: SharedServerSeen): string[] {
  const count = seen.dispatchers?.length ?? 1
  return dispatcherFaults(seen).map(({ number, what }) =>
    faultWords[what](count === 1 ? 'dispatcher' : `dispatcher ${number} of ${count}`),
  )
}

const stateWords: Record<
  SharedServerState,
  { title: string; tone: 'good' | 'warn' | 'bad' | 'neutral'; meaning: string }
> = {
  off: {
    title: 'Off',
    tone: 'neutral',
    meaning: 'Every session has a backend of its own; there is no port for shared sessions.',
  },
  native: {
    title: 'Off for new sessions',
    tone: 'neutral',
    meaning:
      'The shared port is open, and every session that logs in there keeps a backend of its own. Sessions that are shared stay shared until they end.',
  },
  on: {
    title: 'On',
    tone: 'good',
    meaning: 'Sessions that come through the shared port without TLS share backends.',
  },
  down: {
    title: 'Dispatcher down',
    tone: 'bad',
    meaning: 'Clients cannot connect at the shared port. The other port is not affected.',
  },
}

/** What a person reads for the state of Shared Server. */
export function sharedServerWords(seen: SharedServerSeen) {
  const state = sharedServerState(seen)
  const words =
    state === 'on' && seen.sharesTls
      ? {
          ...stateWords.on,
          meaning: 'Sessions that come through the shared port share backends, with TLS and without.',
        }
      : stateWords[state]
  // some of its clients wait: that is no good state
  return state !== 'down' && dispatcherFaults(seen).length > 0
    ? { ...words, title: `${words.title}, impaired`, tone: 'warn' as const }
    : words
}

/** What to do about dispatchers that do not do their work, and where more is said of them; empty where all do. */
export function dispatcherFaultHint(seen: SharedServerSeen): string {
  const faults = dispatcherFaults(seen)
  if (faults.length === 0) return ''
  if (faults.some((f) => f.what === 'absent')) return 'The instance’s log says why.'
  return faults.some((f) => f.what === 'stopped')
    ? 'Let the process go on ("kill -CONT PID" on the host; polar_stat_dispatcher has its PID), or restart the instance.'
    : 'Restart the instance.'
}

/**
 * Shared Server across the members of a cluster, as last seen: who is known not to share backends while another member does,
 * and at which ports those are that do.
 */
export function sharedServerMembers(
  members: readonly { name: string; sharedServer?: SharedServerSeen | null | undefined }[],
): { missing: string[]; ports: number[] } {
  const on = members.flatMap(({ sharedServer: s }) => (s?.enabled && s.port !== null ? [s.port] : []))
  const missing = members.flatMap(({ name, sharedServer: s }) =>
    on.length > 0 && s && !(s.enabled && s.port !== null) ? [name] : [],
  )
  return { missing, ports: [...new Set(on)].sort((a, b) => a - b) }
}

/** What Shared Server does not do yet, wherever a person turns it on. */
export const SHARED_SERVER_LIMITS = [
  'Experimental: the engine’s list of known holes is in engine/modules/shared_server/README.sessions.md.',
  'A client that uses TLS gets a backend of its own and gains nothing, unless polar_ss_share_tls is on; then one process for each dispatcher ends TLS for all of its clients. libpq asks for TLS unless sslmode=disable says otherwise.',
  'Replication connections, and the databases and roles of polar_ss_dedicated_dbuser_names, are never shared.',
] as const

/** Reasons that the engine states in one word or two, with what a person can do about them. */
const advice: Readonly<Record<string, string>> = {
  'temporary objects':
    'Drop temporary tables when they are no longer needed (DISCARD TEMP), or create them ON COMMIT DROP.',
  'session locks':
    'Use pg_advisory_xact_lock(), which ends with its transaction, or release the lock with pg_advisory_unlock().',
  LISTEN: 'Have one session at the instance’s own port listen for all, or run UNLISTEN.',
  'cursors WITH HOLD': 'Close the cursor, or read it within its transaction.',
  'prepared statements':
    'Deallocate statements that were prepared with standard_conforming_strings off, or whose text is no longer parsed to what they are.',
  setseed: 'The sequence of random() stays with its session: only the session’s end changes that.',
  size: 'The session takes more than 96 kB along: deallocate prepared statements and reset long settings.',
  'base backup': 'It ends with pg_backup_stop().',
  'replication origin': 'It ends with pg_replication_origin_session_reset().',
  'temporary replication slots': 'Drop the slot.',
  polar_ss_shared_memory_size:
    'No memory is left for what sessions take along: raise polar_ss_shared_memory_size (a reload).',
}

/** Libraries that are known to keep of a session what another backend does not have: connections, variables of a language. */
const keepsSession = ['dblink', 'postgres_fdw', 'plperl', 'plpython3', 'pltcl', 'plv8']

/** Names of libraries as `polar_ss_safe_modules`, a list of identifiers, takes them. */
export const inSafeModules = (libraries: readonly string[]): string =>
  libraries
    .map((name) => (/^[a-z_][a-z0-9_$]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`))
    .join(', ')

function libraryAdvice(library: string): string {
  if (keepsSession.includes(library))
    return `${library} keeps connections or variables of its session: have who uses it connect at the instance’s own port. Where shared_preload_libraries loads it, every session is pinned: remove it there.`
  return `The engine does not know what ${library} keeps of a session. If it keeps nothing but settings, add ${inSafeModules([library])} to polar_ss_safe_modules (a reload). Otherwise have who uses it connect at the instance’s own port, and leave it out of the preload libraries.`
}

/** What a person can do about sessions that are pinned for a reason, in the engine's words. */
export function pinnedAdvice(reason: string): string {
  const known = Object.hasOwn(advice, reason) ? advice[reason] : undefined
  if (known) return known
  // engines of before name the file of one that a session has loaded
  const library = /^library (.+?)(?:\.so)?$/.exec(reason)?.[1]
  if (library) return libraryAdvice(library)
  if (reason === 'setting temp_buffers') return 'RESET temp_buffers.'
  if (reason.startsWith('setting '))
    return 'Reset the setting in the session. It cannot move, or polar_ss_dedicated_guc_names lists it.'
  return 'engine/modules/shared_server/README.sessions.md lists what pins a session, and until when.'
}

/** Workers against `polar_ss_backend_max_count`: reserved ones start beyond it when nobody was given one for the stall limit. */
export const workersWords = (workers: number, max: number): string =>
  workers > max
    ? `${max} and ${workers - max} in reserve, because sessions waited too long`
    : `${workers} of at most ${max}`

/** A wait for a worker: `0.13 ms`, `42 ms`, `1.5 s`. */
export function formatWait(ms: number): string {
  if (ms >= 10_000) return `${Math.round(ms / 1_000)} s`
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(1)} s`
  if (ms >= 10) return `${Math.round(ms)} ms`
  return `${Number(ms.toPrecision(2))} ms`
}

/**
 * How to reach the shared port. Where clients that use TLS are native the strings say that they do not; unless clients on other
 * hosts are let in over TLS only: then they have to, and `shared` is false. With `polar_ss_share_tls` they are those of the
 * other port.
 */
export function sharedConnection(
  target: ConnectionTarget,
  { port, sharesTls = false }: { port: number; sharesTls?: boolean | undefined },
  access: RemoteAccess | null | undefined,
): { forms: ConnectionForms; shared: boolean } {
  const tlsOnly = access?.listens === true && requiresTls(access)
  const tls = tlsOnly || (sharesTls ? requiresTls(access) : 'disabled')
  return { forms: connectionForms({ ...target, port }, null, tls), shared: sharesTls || !tlsOnly }
}
