import {
  createDatabase,
  endLeasesOf,
  listAgents,
  listenForNotifications,
  listLeaseOwners,
  registerHost,
} from '@floe/db'
import { Agents } from './agents'
import type { Log } from './log'
import { DatabaseWatch, runLoop } from './loop'
import { runMaintenance } from './maintenance'
import { HostLanes } from './observe/host-lanes'
import { type LeaseTimes, OperationLoop } from './operation-loop'
import { isDeadOwner, makeOwner } from './owner'

/** Leases outlast three renewals, so that one slow moment of the control database costs nothing. */
export const LEASE_TIMES: LeaseTimes = { leaseMs: 10_000, renewMs: 3_000 }

export type ControllerOptions = {
  connectionString: string
  /** PEM of the authority of the agents' certificates, and the key that may start tasks. */
  authority: string
  taskKey: string
  /** The host of this installation: its row is made at start. */
  host: { hostId: string; name: string; agentUrl: string }
  log: Log
  times?: LeaseTimes
}

/**
 * Starts a controller: it leases operations, observes hosts and keeps the samples in order until `stop()`, which ends
 * passes in order and gives every lease back. Any number may run beside each other.
 */
export function startController(options: ControllerOptions) {
  const { log } = options
  const times = options.times ?? LEASE_TIMES
  const owner = makeOwner(options.host.hostId)
  const database = new DatabaseWatch(log)
  const db = createDatabase({
    connectionString: options.connectionString,
    applicationName: 'floe controller',
    max: 20,
    onIdleError: (error) => database.missed(error),
  })
  const agents = new Agents({ ca: options.authority, key: options.taskKey })
  const stop = new AbortController()
  const operations = new OperationLoop({ db, agents, log, database, owner, times })
  const notifications = listenForNotifications({
    connectionString: options.connectionString,
    channels: ['operation_queued'],
    onNotification: () => operations.wake(),
    onConnected: () => operations.wake(),
    onLost: (error) => database.missed(error),
  })
  const parts = { db, agents, log, database, times, owner }

  async function run() {
    await start()
    await Promise.all([
      operations.run(stop.signal),
      new HostLanes(parts).run(stop.signal),
      runMaintenance(parts, stop.signal),
    ])
  }

  /** Makes the own host's row and takes over from controllers of this machine that were killed. */
  async function start() {
    const ready = new AbortController()
    const signal = AbortSignal.any([stop.signal, ready.signal])
    await runLoop({ name: 'register host', everyMs: 0, signal, log, database }, async () => {
      await registerHost(db.pool, options.host)
      for (const { hostId, agentUrl } of await listAgents(db.pool)) agents.place(hostId, agentUrl)
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
