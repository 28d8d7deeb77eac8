import type { InstanceObserved, Report } from '@floe/agent-contract'
import type { KnownInstance } from '@floe/db'
import {
  type DispatcherFault,
  dispatcherFaultHint,
  dispatcherFaults,
  dispatcherFaultWords,
  type Fault,
  formatBytes,
  formatDuration,
  HOST_OFFLINE_MS,
  type IncidentKindOpenedBy,
  type IncidentReport,
  incident,
  incidentKey,
  incidentKindOf,
  incidentKinds,
  KILLED_LATELY_MS,
  memoryKillWords,
  type Protection,
  sharedServerState,
  waitingForStandbys,
  windowEndedLately,
} from '@floe/domain'

/** A file system with less free than this opens an incident, and keeps it until more than the second is free. */
export const DISK_LOW_SHARE = 0.05
export const DISK_ENOUGH_SHARE = 0.06
/** A slot that nobody uses may keep this much WAL before somebody has to look. */
export const SLOT_RETAINED_BYTES = 1024 ** 3
/** Clocks that differ by more make ages and charts wrong. */
export const CLOCK_SKEW_MS = 5_000

export type HostSeen = {
  hostId: string
  hostName: string
  report: Report
  /** As the database knew them before this report. */
  known: readonly KnownInstance[]
  /** The host's clock minus ours, null while unknown. */
  clockSkewMs: number | null
  /** Instances whose cluster's record is in doubt: what they are meant to be is not known. */
  inDoubt: ReadonlySet<string>
  /** What is open now, by key with its detail: for what opens and closes at different thresholds, or adds to its detail. */
  open: ReadonlyMap<string, string | null>
}

/** Of a kind that the lane of its host opens, and therefore closes. */
export type HostIncident = IncidentReport<IncidentKindOpenedBy<'host lane'>>

/** Every incident that ought to be open for a host that answered, and no other: what is not named here is over. */
export function deriveIncidents(seen: HostSeen): HostIncident[] {
  const reported = new Map(seen.report.instances.map((i) => [i.instanceId as string, i]))
  const busy = new Set(seen.known.filter((k) => k.busy).map((k) => k.instanceId))
  const suspended = ({ key, instanceId }: HostIncident) =>
    instanceId &&
    busy.has(instanceId) &&
    incidentKindOf(key)?.duringOperations === 'not opened' &&
    !seen.open.has(key)
  const found = [
    ...seen.report.facts.disks.flatMap((disk) => diskIncident(seen, disk)),
    ...clockIncident(seen),
    ...problemIncidents(seen),
    ...seen.known.flatMap((known) => instanceIncidents(seen, known, reported.get(known.instanceId))),
    ...seen.known.flatMap((known) => fenceIncidents(seen, known, reported.get(known.instanceId))),
    ...seen.known.flatMap((known) => replicationIncidents(seen, known, reported.get(known.instanceId))),
    ...seen.known.flatMap((known) => protectionIncidents(seen, known, reported.get(known.instanceId))),
    ...seen.known.flatMap((known) => memoryIncidents(seen, known, reported.get(known.instanceId))),
    ...seen.known.flatMap((known) => killIncidents(seen, known, reported.get(known.instanceId))),
    ...seen.known.flatMap((known) => flashbackIncidents(seen, known, reported.get(known.instanceId))),
    ...seen.known.flatMap((known) => sharedServerIncidents(seen, known, reported.get(known.instanceId))),
    ...unregistered(seen),
  ]
  return found.filter((i) => !suspended(i))
}

function diskIncident(seen: HostSeen, disk: Report['facts']['disks'][number]): HostIncident[] {
  const about: [string, string] = [seen.hostId, disk.mount]
  const share = disk.sizeBytes > 0 ? disk.freeBytes / disk.sizeBytes : 1
  if (share >= (seen.open.has(incidentKey('disk-low', ...about)) ? DISK_ENOUGH_SHARE : DISK_LOW_SHARE))
    return []
  return [
    incident('disk-low', about, {
      ...(share < 0.01 ? { severity: 'critical' } : {}),
      title: `file system "${disk.mount}" of host "${seen.hostName}" is almost full`,
      // whole percent, so that the text does not change with every block written
      detail: `${Math.floor(share * 100)} % of ${formatBytes(disk.sizeBytes)} are free.`,
      hint: 'Free space or move an instance: an instance whose disk is full stops.',
      hostId: seen.hostId,
    }),
  ]
}

function clockIncident(seen: HostSeen): HostIncident[] {
  const skew = seen.clockSkewMs
  if (skew === null || Math.abs(skew) < CLOCK_SKEW_MS) return []
  return [
    incident('host-clock', [seen.hostId], {
      title: `the clock of host "${seen.hostName}" is wrong`,
      detail: `It is ${formatDuration(Math.abs(skew))} ${skew > 0 ? 'ahead of' : 'behind'} the console's.`,
      hint: 'Synchronise both clocks, e.g. with chrony.',
      hostId: seen.hostId,
    }),
  ]
}

/** What an agent says is wrong with itself. */
function problemIncidents(seen: HostSeen): HostIncident[] {
  return (seen.report.problems ?? []).map(({ key, instanceId, fault }) =>
    incident('agent-problem', [seen.hostId, key], {
      title: `agent of host "${seen.hostName}": ${fault.message}`,
      detail: fault.detail,
      hint: fault.hint,
      hostId: seen.hostId,
      // only an instance with a row can be linked to
      instanceId: seen.known.some((k) => k.instanceId === instanceId) ? instanceId : null,
    }),
  )
}

/** An engine that waits for torn pages: the member that could give them may be down and wait for this one. */
const TORN =
  /is torn, and no page repair source could give it|could not get block \d+ .* from any page repair source/

const hintOfCrash = (name: string, detail: string | null): string =>
  detail !== null && TORN.test(detail)
    ? `Its torn pages come from another member: start one that is whole, then run "./floe instance start ${name}". If every member crashed and each waits for another one, run "./floe cluster recover ${name} --confirm PRIMARY", with the name of its primary; keep all data directories until then.`
    : `Its agent restarts it automatically, three times within minutes. If it stays down, fix what its log reports, then run "./floe instance start ${name}".`

/** Its memory is near its limit: reported before the kernel kills. The agent measures, with a threshold of its own for the end. */
function memoryIncidents(
  seen: HostSeen,
  known: KnownInstance,
  reported: InstanceObserved | undefined,
): HostIncident[] {
  const limits = reported?.limits
  if (known.deleted || !limits?.memoryNearLimit) return []
  const { memoryHigh, memoryMax } = limits.ordered
  const at =
    memoryMax === null
      ? 'From its high on the kernel slows it down.'
      : `At ${formatBytes(memoryMax)} the kernel kills one of its processes, and the engine restarts all of its sessions.`
  const least = Math.min(memoryHigh ?? Number.POSITIVE_INFINITY, memoryMax ?? Number.POSITIVE_INFINITY)
  return [
    incident('memory-near-limit', [known.instanceId], {
      title: `memory of instance "${known.name}" is near its limit`,
      detail: `It holds more than 90 % of ${formatBytes(least)} that the kernel cannot reclaim. ${at}`,
      hint: `End sessions, lower work_mem or shared_buffers, or raise the limit: "./floe instance limit ${known.name} --memory-max SIZE".`,
      hostId: seen.hostId,
      instanceId: known.instanceId,
    }),
  ]
}

/** A process of it was killed for want of memory: over at once, and reported for a while, because the sessions are gone. */
function killIncidents(
  seen: HostSeen,
  known: KnownInstance,
  reported: InstanceObserved | undefined,
): HostIncident[] {
  const kill = reported?.limits?.lastMemoryKill
  if (known.deleted || !kill || seen.report.at - kill.at >= KILLED_LATELY_MS) return []
  const { name } = known
  return [
    incident('memory-kill', [known.instanceId], {
      title: `the kernel killed a process of instance "${name}" for want of memory`,
      detail: `At ${new Date(kill.at).toISOString()} ${memoryKillWords(kill)}`,
      hint:
        kill.cause === 'host'
          ? `See who uses the host's memory with "./floe host map ${seen.hostName}", and limit who uses most of it.`
          : `Lower work_mem, shared_buffers or max_connections, or raise the limit: "./floe instance limit ${name} --memory-max SIZE".`,
      hostId: seen.hostId,
      instanceId: known.instanceId,
    }),
  ]
}

function instanceIncidents(
  seen: HostSeen,
  known: KnownInstance,
  reported: InstanceObserved | undefined,
): HostIncident[] {
  const ids = { hostId: seen.hostId, instanceId: known.instanceId }
  const about: [string] = [known.instanceId]
  if (known.deleted)
    return reported && known.deletedBefore
      ? [
          incident('instance-left', about, {
            ...ids,
            title: `host "${seen.hostName}" still has instance "${known.name}", which was removed`,
            detail: `It was removed while its host could not be reached. It is ${reported.state}; its directory is "${reported.directory}".`,
            hint: 'It is fenced, and Floe does not start it again. Check whether it holds anything you need, then remove its directory by hand.',
          }),
        ]
      : []
  if (reported?.processFault) {
    const { message, detail, hint } = reported.processFault
    return [incident('instance-processes', about, { ...ids, title: message, detail, hint })]
  }
  const crashed = incidentKey('instance-crashed', ...about)
  // one that is starting after a crash has not come back yet
  if (reported?.state === 'crashed' || (reported?.state === 'starting' && seen.open.has(crashed))) {
    const detail = whyCrashed(seen.open.get(crashed) ?? null, reported)
    return [
      incident('instance-crashed', about, {
        ...ids,
        title: `instance "${known.name}" crashed`,
        detail,
        hint: hintOfCrash(known.name, detail),
      }),
    ]
  }
  if (reported?.settingDrift?.length)
    return [
      incident('setting-drift', about, {
        ...ids,
        title: `configuration drift on instance "${known.name}"`,
        detail: `${reported.settingDrift.map((d) => `${d.name} in ${d.file}`).join(', ')}.`,
        hint: 'Adopt or revert the change on its settings page, or with "./floe setting adopt" or "./floe setting revert".',
      }),
    ]
  if (!reported && isMissing(known))
    return [
      incident('instance-missing', about, {
        ...ids,
        title: `instance "${known.name}" is missing`,
        detail: `The agent of host "${seen.hostName}" no longer knows it: its directory or the agent’s state was removed.`,
        hint: `If its directory still exists, "./floe instance adopt ${known.name}" registers it again without a restart. Delete the instance if it was removed on purpose.`,
      }),
    ]
  return []
}

const AND_LATER = '\nWhen it was started again: '

/** Why it went down first, and why it was down last: a start that fails says less about the cause than the crash does. */
function whyCrashed(told: string | null, now: InstanceObserved): string | null {
  const [first] = told?.split(AND_LATER) ?? []
  if (!first) return now.state === 'crashed' ? now.because : null
  // what is said of one that is starting is that it was started
  if (now.state !== 'crashed' || !now.because || told?.endsWith(now.because)) return told
  return now.because === first ? first : `${first}${AND_LATER}${now.because}`
}

/**
 * Why an order to fence an instance is not carried out, or null. What was ordered long ago, or stands in a control database
 * that was restored, may be about a primary that is none any more, while the instance is one by right.
 */
export function whyFenceWaits(
  { name, fenceOrderedAt, fenceTimeline, fenceRefusal }: KnownInstance,
  reported: Pick<InstanceObserved, 'timeline'>,
): string | null {
  if (!fenceOrderedAt) return null
  if (fenceTimeline === null) return 'The timeline for which its fencing was ordered is unknown.'
  if (fenceRefusal) return fenceRefusal.detail ?? fenceRefusal.message
  if (reported.timeline === null || reported.timeline <= fenceTimeline) return null
  return `The order covers timelines up to ${fenceTimeline}; "${name}" is on timeline ${reported.timeline}: it was promoted since.`
}

function fenceIncidents(
  seen: HostSeen,
  known: KnownInstance,
  reported: InstanceObserved | undefined,
): HostIncident[] {
  const why = reported && !reported.fenced ? whyFenceWaits(known, reported) : null
  if (why === null) return []
  return [
    incident('fence-waits', [known.instanceId], {
      hostId: seen.hostId,
      instanceId: known.instanceId,
      title: `instance "${known.name}" is not fenced as ordered`,
      detail: why,
      hint: 'Determine which member should be the primary. If it is this one, the control database is older than the cluster: restore a newer one. If not, rejoin it as a standby, or stop it and remove its directory.',
    }),
  ]
}

/** What a cluster's member says of replication that a person has to know. */
function replicationIncidents(
  seen: HostSeen,
  known: KnownInstance,
  reported: InstanceObserved | undefined,
): HostIncident[] {
  if (known.deleted || reported?.state !== 'running') return []
  const ids = { hostId: seen.hostId, instanceId: known.instanceId }
  const about: [string] = [known.instanceId]
  const found: HostIncident[] = []
  const doubted =
    seen.inDoubt.has(known.instanceId) && !seen.open.has(incidentKey('second-primary', ...about))
  if (reported.role === 'primary' && known.memberRole !== 'primary' && !doubted)
    found.push(
      incident('second-primary', about, {
        ...ids,
        title: `instance "${known.name}" accepts writes although it is not its cluster's primary`,
        detail: 'Writes to it do not reach the cluster and are lost when it is rejoined.',
        hint: 'After a failover, Floe fences it automatically. Otherwise somebody promoted it by hand: rejoin it.',
      }),
    )
  const lacking = reported.role === 'primary' && waitingForStandbys(reported.replication)
  if (lacking)
    found.push(
      incident('commits-wait', about, {
        ...ids,
        title: `commits wait on instance "${known.name}"`,
        detail: `${lacking.connected} of ${lacking.asked} synchronous standbys are connected.`,
        hint: 'Start or rejoin a standby, create another one, or have commits wait for fewer standbys.',
      }),
    )
  for (const slot of reported.replication?.slots ?? [])
    if (!slot.active && ((slot.retainedBytes ?? 0) >= SLOT_RETAINED_BYTES || slot.walStatus === 'lost'))
      found.push(
        incident('slot-unused', [known.instanceId, slot.name], {
          ...ids,
          title: `slot "${slot.name}" of instance "${known.name}" is not used`,
          detail:
            slot.walStatus === 'lost'
              ? 'WAL that its standby needs has been removed.'
              : `It retains at least ${formatBytes(SLOT_RETAINED_BYTES)} of WAL.`,
          hint: 'Bring its standby back or remove it; otherwise the slot retains WAL until the disk is full.',
        }),
      )
  return found
}

/**
 * Pages that a crash could tear for good, or a guard that a person turned off. Being exposed counts once it has lasted for
 * the grace period. It is over when the engine says so: a source that is healthy again ends nothing before the guard ends
 * its images, which it does when the source has been healthy for as long; nor does any matter once a person has images
 * written and a checkpoint has them.
 */
function protectionIncidents(
  seen: HostSeen,
  known: KnownInstance,
  reported: InstanceObserved | undefined,
): HostIncident[] {
  const p = reported?.protection
  if (known.deleted || reported?.state !== 'running' || !p) return []
  const ids = { hostId: seen.hostId, instanceId: known.instanceId }
  const about: [string] = [known.instanceId]
  if (p.state === 'overridden')
    return [
      incident('page-guard-off', about, {
        ...ids,
        title: `instance "${known.name}" runs without protection against torn pages`,
        detail: 'full_page_writes and polar_page_repair_guard are off: a page torn by a crash may be lost.',
        hint: 'Turn the guard on before the instance holds data that cannot be loaded again.',
      }),
    ]
  const lasted = seen.report.at - p.since >= incidentKinds['page-unprotected'].engineGraceMs
  const open = seen.open.has(incidentKey('page-unprotected', ...about))
  const sick = !p.sources.some((s) => s.healthy)
  const exposed = p.state === 'exposed'
  // the guard has images written although the setting is off: at each start, too, until it has seen a healthy source
  const guarded = p.state === 'full_page_writes' && !p.fullPageWrites && p.imagesInForce === true
  // a person has just had images written: the next checkpoint ends it, and nobody has to look
  const ending = p.fullPageWrites && p.imagesInForce !== null
  const unprotected = exposed || (guarded && (sick || open))
  const opens = lasted && !ending
  if (!unprotected || !(open || opens)) return []
  return [
    incident('page-unprotected', about, {
      ...ids,
      title: `instance "${known.name}" has no healthy page repair source`,
      detail: whyUnprotected(p, sick),
      hint: unprotectedHint(p, sick),
    }),
  ]
}

/** A window that was lost, in part or as a whole, and one that does not begin: each member answers for its own. */
function flashbackIncidents(
  seen: HostSeen,
  known: KnownInstance,
  reported: InstanceObserved | undefined,
): HostIncident[] {
  const log = reported?.flashback
  if (known.deleted || reported?.state !== 'running' || !log) return []
  const ids = { hostId: seen.hostId, instanceId: known.instanceId }
  const about: [string] = [known.instanceId]
  const found: HostIncident[] = []
  if (windowEndedLately(log, seen.report.at))
    found.push(
      incident('flashback-window-ended', about, {
        ...ids,
        title: `instance "${known.name}" cannot be flashed back to before ${new Date(log.lastEndedAt ?? 0).toISOString()}`,
        detail: `The window of its flashback log ended then: ${log.lastEndReason ?? 'the engine gives no reason'}.`,
        hint:
          log.mode === 'async'
            ? 'With polar_flashback_log_mode = sync the window survives a crash of the operating system.'
            : 'Check the disk of its data directory.',
      }),
    )
  if (log.state === 'waiting')
    found.push(
      incident('flashback-log-waiting', about, {
        ...ids,
        title: `the flashback log of instance "${known.name}" has no window`,
        detail: log.lastEndReason === null ? undefined : `It ended last because: ${log.lastEndReason}.`,
        hint: 'A window begins with a complete checkpoint. The instance’s log says why pages cannot be kept.',
      }),
    )
  return found
}

/** A shared port that nobody serves, or not every dispatcher does, whether its sessions would share backends or not. */
function sharedServerIncidents(
  seen: HostSeen,
  known: KnownInstance,
  reported: InstanceObserved | undefined,
): HostIncident[] {
  const server = reported?.sharedServer
  if (known.deleted || reported?.state !== 'running' || !server) return []
  const faults = dispatcherFaults(server)
  if (faults.length === 0) return []
  const [down, one] = [sharedServerState(server) === 'down', (server.dispatchers?.length ?? 1) === 1]
  const among = (what: DispatcherFault['what']) => faults.some((f) => f.what === what)
  const own = server.port === reported.port
  const costs = own
    ? `port ${server.port} is the instance’s own, where clients are served as before and share nothing`
    : down
      ? `clients of port ${server.port} ${faults[0]?.what === 'absent' ? 'cannot connect' : 'wait'}, those of port ${reported.port} are not affected`
      : among('relay inactive') && faults.length === 1
        ? 'its clients that use TLS wait, others are not affected'
        : `its sessions wait or have ended, those of other dispatchers and of port ${reported.port} are not affected`
  return [
    incident('shared-server-down', [known.instanceId], {
      hostId: seen.hostId,
      instanceId: known.instanceId,
      title: down
        ? `instance "${known.name}" does not serve its shared port`
        : `instance "${known.name}" does not serve all clients of its shared port`,
      detail: `${dispatcherFaultWords(server).join('; ')}: ${costs}.`,
      hint: own
        ? `Choose another port: "./floe setting set ${known.name} polar_ss_port=PORT", and restart the instance.`
        : among('absent')
          ? one || down
            ? `The instance’s log says why. Where another program has the port, end it, or choose another port: "./floe setting set ${known.name} polar_ss_port=PORT", and restart the instance.`
            : 'The instance’s log says why. Each dispatcher is one of max_worker_processes: raise that, or lower polar_ss_dispatcher_count, and restart the instance.'
          : among('stopped')
            ? dispatcherFaultHint(server)
            : 'Restart the instance. Before that, "gdb -p PID -batch -ex bt" as its user shows what the process does; polar_stat_dispatcher has its PID.',
    }),
  ]
}

function whyUnprotected(p: Protection, sick: boolean): string {
  if (p.sources.length === 0 && p.imagesInForce === null) return 'No other member is a page repair source.'
  if (p.sources.length === 0 && !p.fullPageWrites) return 'No standby is a page repair source.'
  // what is wrong with a source may have positions in it, and the text would change with every look
  return sick && (p.why === '' || /(^|; )source "/.test(p.why))
    ? 'No page repair source is healthy.'
    : `The engine reports: ${p.why}.`
}

function unprotectedHint(p: Protection, sick: boolean): string {
  // the guard of a standby decides nothing
  if (p.imagesInForce === null)
    return `Its primary decides about full-page images.${sick ? ' Bring back its primary or another standby to fetch pages from.' : ''}`
  if (p.fullPageWrites)
    return 'Full-page images are written again: they protect once a checkpoint with them is complete.'
  return sick
    ? 'The guard has re-enabled full-page images until a page repair source is healthy: bring a standby back, or create one.'
    : 'The guard has re-enabled full-page images until it can rely on a page repair source.'
}

/** An instance that was there; one that is being created, or was never made, or is being deleted, may well be absent. */
export function isMissing(known: KnownInstance): boolean {
  return known.seen && known.created && !known.busy && !known.deleted
}

function unregistered(seen: HostSeen): HostIncident[] {
  const ours = new Set(seen.known.map((k) => k.instanceId))
  return seen.report.instances
    .filter((i) => !ours.has(i.instanceId))
    .map((i) =>
      incident('instance-unregistered', [i.instanceId], {
        title: `host "${seen.hostName}" runs an instance that this console does not know`,
        detail: `Its name is "${i.name}", its directory ${i.directory}.`,
        hint: `It belongs to another installation, or the control database was recreated or is older than the instance. Unless it is a standby, "./floe instance adopt ${i.name} --host ${seen.hostName}" registers it here.`,
        hostId: seen.hostId,
      }),
    )
}

/** The incident of a host that does not answer; undefined until it has not for 30 s. */
export function hostOffline(host: {
  hostId: string
  hostName: string
  silentMs: number
  fault: Fault
}): HostIncident | undefined {
  if (host.silentMs < HOST_OFFLINE_MS) return undefined
  return incident('host-offline', [host.hostId], {
    title: `host "${host.hostName}" is offline`,
    detail: [host.fault.message, host.fault.detail].filter(Boolean).join(': '),
    hint:
      host.fault.hint ??
      'Its instances do not depend on the agent, but their state is unknown until the agent answers.',
    hostId: host.hostId,
  })
}
