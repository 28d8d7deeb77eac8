import { type AgentAddress, closeIncidents, listAgents, openIncidentKeys, takeLease } from '@floe/db'
import { runLoop, type Wake } from '../loop'
import { HostLane, type LaneParts } from './host-lane'

type Parts = LaneParts & { owner: string; wake: Wake }

/** Keeps a lane for every host whose lease this controller can get; a revoked host has none. */
export class HostLanes {
  readonly #parts: Parts
  readonly #lanes = new Map<string, HostLane>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log, database, wake } = this.#parts
    await runLoop({ name: 'find hosts', everyMs: 1_000, signal, log, database, wake }, () =>
      this.#pass(signal),
    )
    await Promise.all([...this.#lanes.values()].map((lane) => lane.stop()))
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { db, owner, times, agents } = this.#parts
    const all = await listAgents(db.pool)
    agents.place(all)
    const hosts = all.filter((host) => !host.revoked)
    for (const host of hosts) {
      const lane = this.#lanes.get(host.hostId)
      // a new address is another place to ask, and a new greeting
      if (lane && !lane.ended && lane.agentUrl === host.agentUrl) continue
      if (lane) await lane.stop()
      this.#lanes.delete(host.hostId)
      const hold = await takeLease(db.pool, { name: `observe:${host.hostId}`, owner, leaseMs: times.leaseMs })
      if (hold && !signal.aborted) this.#lanes.set(host.hostId, new HostLane(host, hold, this.#parts))
    }
    for (const [hostId, lane] of this.#lanes) {
      if (hosts.some((host) => host.hostId === hostId)) continue
      this.#lanes.delete(hostId)
      void lane.stop().then(() => this.#leave(hostId, all))
    }
  }

  /** What was wrong with a host that was revoked or removed is nobody's concern any more. */
  async #leave(hostId: string, all: readonly AgentAddress[]): Promise<void> {
    const { db, log, database } = this.#parts
    const revoked = all.some((host) => host.hostId === hostId)
    log.info(revoked ? 'host.revoked' : 'host.removed', { hostId })
    try {
      for (const key of await closeIncidents(db.pool, await openIncidentKeys(db.pool, hostId)))
        log.info('incident.closed', { key })
    } catch (error) {
      database.missed(error)
    }
  }
}
