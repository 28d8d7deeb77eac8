import { contractVersion, type Hello, type Report } from '@floe/agent-contract'
import { agentFault } from '@floe/agent-contract/client'
import {
  isDatabaseAway,
  type KnownInstance,
  keepHoldings,
  type LeaseHold,
  LeaseLostError,
  listRestoredRecords,
  noteNewerPrimary,
  putRecovery,
  readCluster,
  releaseLease,
  takeLease,
  writeHello,
  writeHostFault,
  writeInstanceMissing,
  writeReport,
} from '@floe/db'
import {
  type AgentAddress,
  afterReport,
  ClusterHoldings,
  type Fault,
  FaultError,
  fault,
  HostId,
  type InForceSince,
  InstanceId,
  type InstanceState,
  isNewerThanRecord,
  newestRecorded,
  PrimaryKnown,
  READ_ONLY,
  whyInstanceMoved,
} from '@floe/domain'
import { pause } from '@floe/host/wait'
import { OperationConflict, submitOperation } from '@floe/operations/submit'
import { REPORT_WAIT_MS } from '../agents'
import { renewHostCertificate } from '../certificates'
import { runLoop } from '../loop'
import type { ControllerParts } from '../parts'
import { deriveIncidents, hostOffline, isMissing, whyFenceWaits } from './derive-incidents'
import { IncidentBook } from './incident-book'
import { TelemetryCollector } from './telemetry-collector'

const HELLO_EVERY_MS = 60_000
const RENEW_LOOK_MS = 1_000
/** A renewal that did not work is tried again after this. */
const RENEW_AGAIN_MS = 60_000
const FENCE_AGAIN_MS = 15_000

export type LaneParts = Omit<ControllerParts, 'owner'> & {
  /** A fence that failed is ordered again after this. */
  fenceAgainMs?: number | undefined
}

/**
 * Observes one host under the lease `observe:<host id>`: its report, its telemetry and its checkpoints, each in a loop of
 * its own. Lanes share nothing but the database, so a slow or dead host delays no other.
 */
export class HostLane {
  readonly #parts: LaneParts
  readonly #host: { hostId: string; name: string; agentUrl: string }
  readonly #abort = new AbortController()
  readonly #incidents: IncidentBook
  readonly #collector: TelemetryCollector
  #hold: LeaseHold
  #hello: Hello | undefined
  #helloAt = 0
  #clockSkewMs: number | null = null
  #after: { bootId: string; seq: number } | null = null
  /** By the clock that never goes back. */
  #answeredAt: number
  #silent = false
  #renewAfter = 0
  readonly #recoveries = new Map<string, string>()
  readonly #holdings = new Map<string, { since: InForceSince | null; settled: string | null }>()
  #lookedAt: () => void = () => {}
  #askedAt: () => void = () => {}
  /** Resolves when its host has been heard once and what is recorded was compared with that, or the lane ends. */
  readonly looked: Promise<void>
  /** Resolves when that is so, or its host was found not to answer, or its answer could not be taken. */
  readonly asked: Promise<void>
  readonly done: Promise<void>

  constructor(host: AgentAddress, hold: LeaseHold, parts: LaneParts) {
    this.#host = { hostId: host.hostId, name: host.hostName, agentUrl: host.agentUrl }
    this.#hold = hold
    this.#parts = parts
    this.#answeredAt = parts.standstills.now().monotonic
    this.looked = new Promise((resolve) => {
      this.#lookedAt = resolve
    })
    this.asked = new Promise((resolve) => {
      this.#askedAt = resolve
    })
    void this.looked.then(this.#askedAt)
    this.#incidents = new IncidentBook(parts.db, { hostId: host.hostId }, parts.log, {
      hold: () => this.#hold,
    })
    this.#collector = new TelemetryCollector(host.hostId, parts)
    const loop = {
      signal: this.#abort.signal,
      log: parts.log,
      database: parts.database,
      fields: { hostId: host.hostId },
    }
    this.done = Promise.all([
      runLoop({ ...loop, name: 'renew host lease', everyMs: parts.times.renewMs }, () => this.#renew()),
      runLoop({ ...loop, name: 'read reports', everyMs: 0 }, () => this.#readReport()),
      runLoop({ ...loop, name: 'read telemetry', everyMs: 1_000 }, () => this.#collector.readSamples()),
      runLoop({ ...loop, name: 'read checkpoints', everyMs: 2_000 }, () => this.#collector.readCheckpoints()),
      runLoop({ ...loop, name: 'renew certificate', everyMs: RENEW_LOOK_MS }, () => this.#renewCertificate()),
    ]).then(() => this.#lookedAt())
    parts.log.info('host.observed', { hostId: host.hostId, lease: hold.token })
  }

  get agentUrl(): string {
    return this.#host.agentUrl
  }

  get ended(): boolean {
    return this.#abort.signal.aborted
  }

  /** Ends the lane and gives its lease back. */
  async stop(): Promise<void> {
    this.#abort.abort()
    await this.done
    await releaseLease(this.#parts.db.pool, this.#hold).catch((error) => this.#parts.database.missed(error))
  }

  #lost(): void {
    this.#parts.log.warn('host.lease_lost', { hostId: this.#host.hostId })
    this.#abort.abort()
  }

  async #renew(): Promise<void> {
    const { name, owner, token } = this.#hold
    const hold = await takeLease(this.#parts.db.pool, { name, owner, leaseMs: this.#parts.times.leaseMs })
    if (!hold) return this.#lost()
    // nobody took it while it was expired: go on under the new number
    if (hold.token !== token)
      this.#parts.log.info('host.lease_renewed', { hostId: this.#host.hostId, lease: hold.token })
    this.#hold = hold
  }

  async #readReport(): Promise<void> {
    const { hostId } = this.#host
    let report: Report
    try {
      await this.#greet()
      report = await this.#parts.agents
        .of(hostId)
        .report.report.read.query(
          { after: this.#after, waitMs: REPORT_WAIT_MS },
          { signal: this.#abort.signal },
        )
    } catch (error) {
      this.#askedAt()
      if (!this.#abort.signal.aborted) await this.#unanswered(agentFault(error))
      return
    }
    try {
      await this.#take(report)
      this.#lookedAt()
    } catch (error) {
      if (!(error instanceof LeaseLostError)) {
        if (!isDatabaseAway(error)) this.#askedAt()
        throw error
      }
      await this.#renew()
      // a host that was revoked meanwhile keeps its lease, and loses its lane within a moment
      await pause(500, this.#abort.signal)
    }
  }

  /** Asks who answers there: at first, when the agent was restarted, and now and then for its clock. */
  async #greet(): Promise<void> {
    if (this.#hello && Date.now() - this.#helloAt < HELLO_EVERY_MS) return
    const { hostId, name } = this.#host
    const askedAt = Date.now()
    const hello = await this.#parts.agents.of(hostId).quick.hello.query()
    if (hello.hostId !== hostId)
      throw fault('agent.wrong_host', `another host's agent answers for host "${name}"`, {
        detail: `It identifies itself as host "${hello.hostName}" (${hello.hostId}).`,
        hint: 'Check the address of the agent.',
      })
    if (hello.contractVersion.split('.')[0] !== contractVersion.split('.')[0])
      throw fault(
        'agent.contract_mismatch',
        `the agent of host "${name}" has an incompatible contract version`,
        {
          detail: `It has version ${hello.contractVersion}, the controller ${contractVersion}.`,
          hint: 'Update the older one.',
        },
      )
    this.#clockSkewMs = hello.now - (askedAt + Date.now()) / 2
    this.#helloAt = askedAt
    if (this.#hello?.bootId !== hello.bootId) {
      await writeHello(this.#parts.db.pool, this.#hold, { ...hello, hostId })
      this.#parts.log.info('host.greeted', { hostId, agentVersion: hello.agentVersion, bootId: hello.bootId })
    }
    this.#hello = hello
  }

  /** Looks at the newest greeting; nothing is asked of the host until a renewal is due. */
  async #renewCertificate(): Promise<void> {
    const hello = this.#hello
    if (!hello || this.#silent || Date.now() < this.#renewAfter) return
    const { hostId } = this.#host
    try {
      if (await renewHostCertificate(this.#host, hello, this.#parts.agents.of(hostId).quick, this.#parts))
        // the next greeting reports the new one
        this.#helloAt = 0
    } catch (error) {
      if (isDatabaseAway(error)) throw error
      this.#renewAfter = Date.now() + RENEW_AGAIN_MS
      this.#parts.log.warn('certificate.not_renewed', { hostId, fault: agentFault(error) })
    }
  }

  async #take(report: Report): Promise<void> {
    const { hostId, name } = this.#host
    if (report.bootId !== this.#hello?.bootId) this.#hello = undefined
    const known = await writeReport(this.#parts.db.pool, this.#hold, {
      hostId,
      facts: report.facts,
      instances: report.instances.map((i) => ({
        instanceId: i.instanceId,
        state: i.state,
        because: i.because,
        role: i.role,
        engineVersion: i.engineVersion,
        systemIdentifier: i.systemIdentifier,
        port: i.port,
        observed: i,
      })),
    })
    this.#answered()
    this.#after = { bootId: report.bootId, seq: report.seq }
    const ours = new Set(known.filter((k) => !k.deleted).map((k) => k.instanceId))
    this.#collector.see(report.instances.filter((i) => ours.has(i.instanceId)))
    await this.#missing(report, known)
    this.#tellMoves(report, known)
    // before anything is done by what is recorded
    await this.#compareRecords(report, known)
    await this.#fence(report, known)
    await this.#keepHoldings(report, known)
    await this.#keepRecoveries(report, ours)
    const wanted = deriveIncidents({
      hostId,
      hostName: name,
      report,
      known,
      clockSkewMs: this.#clockSkewMs,
      inDoubt: await this.#inDoubt(report, known),
      open: await this.#incidents.open(),
    })
    await this.#incidents.settle(wanted, () => true)
  }

  async #missing(report: Report, known: readonly KnownInstance[]): Promise<void> {
    const reported = new Set<string>(report.instances.map((i) => i.instanceId))
    for (const instance of known) {
      if (reported.has(instance.instanceId) || instance.deleted || instance.busy || !instance.seen) continue
      const because = isMissing(instance)
        ? 'its agent no longer knows it'
        : 'its creation was given up; nothing of it is left on the host'
      await writeInstanceMissing(this.#parts.db.pool, this.#hold, instance.instanceId, because)
    }
  }

  /**
   * What could not be fenced when another one took over, or was removed without its host: now its host answers. An order
   * that does not fit what the host reports is not carried out; it is an incident.
   */
  async #fence(report: Report, known: readonly KnownInstance[]): Promise<void> {
    for (const order of known) {
      const { instanceId, fenceOrderedAt, fenceTimeline, busy } = order
      if (!fenceOrderedAt || busy) continue
      const reported = report.instances.find((i) => i.instanceId === instanceId)
      if (!reported || whyFenceWaits(order, reported)) continue
      // one that failed is tried again, but not in every report
      const round = Math.floor(Date.now() / (this.#parts.fenceAgainMs ?? FENCE_AGAIN_MS))
      try {
        const { created, operationId } = await submitOperation(this.#parts.db, {
          kind: 'fence-instance',
          input: { instanceId: InstanceId.parse(instanceId), timeline: fenceTimeline },
          actor: { id: 'controller', name: 'Controller' },
          idempotencyKey: `fence:${instanceId}:${fenceOrderedAt.getTime()}:${round}`,
        })
        if (created) this.#parts.log.warn('instance.fencing', { instanceId, operationId })
      } catch (error) {
        const readOnly = error instanceof FaultError && error.fault.code === READ_ONLY
        if (!readOnly && !(error instanceof OperationConflict)) throw error
      }
    }
  }

  /** Whether the record of a cluster is older than what this host's agent was informed of: the control database was restored then. */
  async #compareRecords(report: Report, known: readonly KnownInstance[]): Promise<void> {
    const { hostId, name: hostName } = this.#host
    for (const { instanceId, primaryKnown: said } of report.instances) {
      const { data: primaryKnown } = PrimaryKnown.safeParse(said)
      const stored = known.find((k) => k.instanceId === instanceId)
      if (!primaryKnown || !stored?.clusterId || stored.deleted || stored.holdings === null) continue
      const { data: holdings } = ClusterHoldings.safeParse(JSON.parse(stored.holdings))
      if (!holdings || primaryKnown.timeline <= newestRecorded(holdings)) continue
      const { clusterId } = stored
      const cluster = await readCluster(this.#parts.db.pool, clusterId)
      if (
        !cluster ||
        !isNewerThanRecord(primaryKnown, { ...cluster, holdings: cluster.holdings ?? holdings })
      )
        continue
      const nameOf = (id: string) => cluster.members.find((m) => m.instanceId === id)?.name ?? null
      const noted = await noteNewerPrimary(this.#parts.db.pool, this.#hold, clusterId, {
        kind: 'newer-primary',
        hostId: HostId.parse(hostId),
        hostName,
        instanceId,
        primary: primaryKnown.instanceId,
        primaryName: nameOf(primaryKnown.instanceId),
        timeline: primaryKnown.timeline,
        recordedTimeline: newestRecorded(holdings),
        recordedPrimaryName: nameOf(cluster.primaryInstanceId) ?? '',
      })
      if (noted)
        this.#parts.log.error('cluster.record_older', { clusterId, hostId, instanceId, primaryKnown })
    }
  }

  /** Instances whose cluster's record is in doubt, by whomever; asked only where a member is not what it is meant to be. */
  async #inDoubt(report: Report, known: readonly KnownInstance[]): Promise<Set<string>> {
    const unmeant = report.instances.some(
      (i) =>
        i.role === 'primary' &&
        known.some((k) => k.instanceId === i.instanceId && k.memberRole !== 'primary'),
    )
    const doubts = unmeant ? await listRestoredRecords(this.#parts.db.pool) : []
    return new Set(
      known
        .filter((k) => doubts.some((d) => d.clusterId === null || d.clusterId === k.clusterId))
        .map((k) => k.instanceId),
    )
  }

  /** What primaries of this host say of their timeline and of the standbys that commits wait for, where it is news. */
  async #keepHoldings(report: Report, known: readonly KnownInstance[]): Promise<void> {
    for (const { instanceId, role, state, replication, fenced } of report.instances) {
      const stored = known.find((k) => k.instanceId === instanceId)
      if (!stored?.clusterId || stored.deleted || stored.busy || stored.memberRole !== 'primary') continue
      if (role !== 'primary' || state !== 'running' || !replication || fenced) continue
      const { timeline, ancestors, commitModes, synchronousStandbyNames, synchronousCommit, commitFloor } =
        replication
      const seen = JSON.stringify([
        stored.holdings,
        timeline,
        ancestors,
        commitModes,
        synchronousStandbyNames,
        synchronousCommit,
        commitFloor,
      ])
      const kept = this.#holdings.get(instanceId)
      if (kept?.settled === seen) continue
      let { since = null } = kept ?? {}
      let settled = false
      await keepHoldings(this.#parts.db.pool, this.#hold, stored.clusterId, (holdings, members) => {
        const after = afterReport(holdings, replication, members, since)
        since = after.since
        settled = after.settled && JSON.stringify(after.holdings) === JSON.stringify(holdings)
        return after.holdings
      })
      this.#holdings.set(instanceId, { since, settled: settled ? seen : null })
    }
  }

  /** What the last recovery of each instance found; written when it is another than was written before. */
  async #keepRecoveries(report: Report, ours: ReadonlySet<string>): Promise<void> {
    for (const { instanceId, protection } of report.instances) {
      const recovery = protection?.recovery
      if (!recovery || !ours.has(instanceId)) continue
      const words = JSON.stringify(recovery)
      if (this.#recoveries.get(instanceId) === words) continue
      await putRecovery(this.#parts.db.pool, instanceId, recovery)
      this.#recoveries.set(instanceId, words)
    }
  }

  #tellMoves(report: Report, known: readonly KnownInstance[]): void {
    const before = new Map<string, InstanceState>(known.map((k) => [k.instanceId, k.state]))
    for (const { instanceId, state, because } of report.instances) {
      const from = before.get(instanceId)
      if (from === undefined || from === state) continue
      const why = whyInstanceMoved(from, state) ?? because
      this.#parts.log.info('instance.moved', {
        instanceId,
        hostId: this.#host.hostId,
        from,
        to: state,
        because: why,
      })
    }
  }

  #answered(): void {
    this.#answeredAt = this.#parts.standstills.now().monotonic
    if (this.#silent) this.#parts.log.info('host.answers', { hostId: this.#host.hostId })
    this.#silent = false
  }

  async #unanswered(why: Fault): Promise<void> {
    const { hostId, name } = this.#host
    if (!this.#silent) this.#parts.log.warn('host.silent', { hostId, fault: why })
    this.#silent = true
    // the next answer may come from another process
    this.#hello = undefined
    const { standstills } = this.#parts
    // who stood still has not listened: the host may have been well all the time
    const listenedSince = Math.max(this.#answeredAt, standstills.since().monotonic)
    const silentMs = standstills.now().monotonic - listenedSince
    try {
      await writeHostFault(this.#parts.db.pool, this.#hold, hostId, why)
      const offline = hostOffline({ hostId, hostName: name, silentMs, fault: why })
      // of what is behind a silent host nothing is known to be over
      if (offline) await this.#incidents.settle([offline], () => false)
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error
      // another controller may hear the host well: what was concluded here does not count
      await this.#renew()
    }
    await pause(1_000, this.#abort.signal)
  }
}
