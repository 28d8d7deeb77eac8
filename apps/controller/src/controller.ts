import type { Authority } from '@floe/authority'
import {
  createDatabase,
  endLeasesOf,
  listAgents,
  listenForNotifications,
  listLeaseOwners,
  registerHost,
} from '@floe/db'
import type { Log } from '@floe/host/log'
import type { Patience } from '@floe/operations'
import { Agents } from './agents'
import { failOverAutomatically } from './automatic-failover'
import { type OwnIdentities, renewOwnCertificates } from './certificates'
import { signEnrolments } from './enrolment'
import { askForHostChecks, carryOutHostChecks } from './host-checks'
import { carryOutHostUpgrades } from './host-upgrades'
import { DatabaseWatch, runLoop, Wake } from './loop'
import { runMaintenance } from './maintenance'
import { watchClusters } from './observe/cluster-watch'
import { HostLanes } from './observe/host-lanes'
import { type LeaseTimes, OperationLoop } from './operation-loop'
import { isDeadOwner, makeOwner } from './owner'
import { settleRestoredRecords } from './restored-records'
import { carryOutSettingChecks } from './setting-checks'
import { Standstills } from './standstills'
import type { AddressRule } from './webhook-address'
import { deliverWebhooks } from './webhooks'

/** Leases outlast three renewals, so that one slow moment of the control database costs nothing. */
export const LEASE_TIMES: LeaseTimes = { leaseMs: 10_000, renewMs: 3_000 }

/**
 * A host that is out of reach holds up operations of all others for no longer than this, and its first question, when a
 * controller starts.
 */
const FIRST_LOOK_MS = 3_000

export type ControllerOptions = {
  connectionString: string
  /** What hosts' certificates are signed with. */
  authority: Authority
  /** Certificate and key that may start tasks; asked before every use, since it is renewed. */
  identity: () => string
  /** Certificates of the console's own processes to be kept fresh. */
  renew?: OwnIdentities
  /** The installation's own secret: what webhooks are signed with follows from it. */
  authSecret: string
  /** Where webhooks may send to. */
  webhookRule: AddressRule
  /** How long a host's certificate is good, in ms; for tests. */
  certificateLifetimeMs?: number
  /** The host of this installation: its row is made at start. */
  host: { hostId: string; name: string; agentUrl: string }
  log: Log
  times?: LeaseTimes
  /** How long operations wait for what may not come; the product's when left out. */
  patience?: Patience
  /** How long a check of settings may take, in ms; for tests. */
  settingCheckMs?: number
  /** A fence that failed is ordered again after this, in ms; for tests. */
  fenceAgainMs?: number
  /** A standby that was sent nothing for this long, in ms, hears nobody; for tests. */
  unheardMs?: number
  /** False where hosts are checked only when somebody asks; for tests. */
  checksHosts?: boolean
}

/**
 * Starts a controller: it leases operations, observes hosts and keeps the samples in order until `stop()`, which ends
 * passes in order and gives every lease back. Any number may run beside each other.
 */
export function startController(options: ControllerOptions) {
  const { log, patience } = options
  const times = options.times ?? LEASE_TIMES
  const owner = makeOwner(options.host.hostId)
  const database = new DatabaseWatch(log)
  const db = createDatabase({
    connectionString: options.connectionString,
    applicationName: 'floe controller',
    max: 20,
    onIdleError: (error) => database.missed(error),
  })
  const agents = new Agents(
    { authority: options.authority.certificate, identity: options.identity },
    patience?.questionMs,
  )
  const signing = { authority: options.authority, lifetimeMs: options.certificateLifetimeMs }
  const stop = new AbortController()
  const standstills = new Standstills(log)
  const operations = new OperationLoop({ db, agents, log, database, owner, times, patience, standstills })
  // a host was enrolled, revoked or removed, or wants to be enrolled
  const [lanesWake, signWake, webhooksWake] = [new Wake(), new Wake(), new Wake()]
  const [checksWake, hostChecksWake] = [new Wake(), new Wake()]
  const wakeHosts = () => {
    lanesWake.now()
    signWake.now()
  }
  const notifications = listenForNotifications({
    connectionString: options.connectionString,
    channels: ['operation_queued', 'host', 'webhook_delivery', 'setting_check', 'host_check'],
    onNotification: (channel) => {
      if (channel === 'host') wakeHosts()
      else if (channel === 'webhook_delivery') webhooksWake.now()
      else if (channel === 'setting_check') checksWake.now()
      else if (channel === 'host_check') hostChecksWake.now()
      else operations.wake()
    },
    onConnected: () => {
      operations.wake()
      wakeHosts()
      checksWake.now()
      hostChecksWake.now()
    },
    onLost: (error) => database.missed(error),
  })
  const parts = { db, agents, log, database, times, owner, signing, standstills }

  async function run() {
    standstills.start()
    await start()
    const lanes = new HostLanes({ ...parts, wake: lanesWake, fenceAgainMs: options.fenceAgainMs })
    await Promise.all([
      // what is recorded is compared with what hosts report before anything is done by it
      lanes.lookedOnce(FIRST_LOOK_MS, stop.signal).then(() => operations.run(stop.signal)),
      lanes.run(stop.signal),
      settleRestoredRecords(parts, stop.signal),
      signEnrolments({ ...parts, wake: signWake }, stop.signal),
      renewOwnCertificates(
        { ...parts, authority: options.authority, identities: options.renew ?? [] },
        stop.signal,
      ),
      watchClusters({ ...parts, unheardMs: options.unheardMs }, stop.signal),
      lanes.lookedOnce(FIRST_LOOK_MS, stop.signal).then(() => failOverAutomatically(parts, stop.signal)),
      runMaintenance(parts, stop.signal),
      carryOutSettingChecks({ ...parts, wake: checksWake, deadlineMs: options.settingCheckMs }, stop.signal),
      carryOutHostChecks({ ...parts, wake: hostChecksWake }, stop.signal),
      lanes.lookedOnce(FIRST_LOOK_MS, stop.signal).then(() => carryOutHostUpgrades(parts, stop.signal)),
      options.checksHosts === false ? undefined : askForHostChecks(parts, stop.signal),
      deliverWebhooks(
        { ...parts, authSecret: options.authSecret, rule: options.webhookRule, wake: webhooksWake },
        stop.signal,
      ),
    ])
  }

  /** Makes the own host's row and takes over from controllers of this machine that were killed. */
  async function start() {
    const ready = new AbortController()
    const signal = AbortSignal.any([stop.signal, ready.signal])
    await runLoop({ name: 'register host', everyMs: 0, signal, log, database }, async () => {
      await registerHost(db.pool, options.host)
      agents.place(await listAgents(db.pool))
      const dead = (await listLeaseOwners(db.pool, `${options.host.hostId}/`)).filter((name) =>
        isDeadOwner(name, options.host.hostId),
      )
      await endLeasesOf(db.pool, dead)
      if (dead.length > 0) log.info('controller.took_over', { from: dead })
      ready.abort()
    })
    if (!stop.signal.aborted) log.info('controller.started', { owner })
  }

  const done = run()
  let stopped: Promise<void> | undefined
  async function end() {
    stop.abort()
    await done
    standstills.stop()
    await notifications.close()
    agents.close()
    await db.close()
    log.info('controller.stopped', { owner })
  }
  return {
    owner,
    /** Ends it in order; asking again answers the same end. */
    stop(): Promise<void> {
      stopped ??= end()
      return stopped
    },
  }
}
