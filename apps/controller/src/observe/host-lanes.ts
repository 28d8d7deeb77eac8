import { listAgents, takeLease } from '@floe/db'
import { runLoop } from '../loop'
import { HostLane, type LaneParts } from './host-lane'

/** Keeps a lane for every host whose lease this controller can get. */
export class HostLanes {
  readonly #parts: LaneParts & { owner: string }
  readonly #lanes = new Map<string, HostLane>()

  constructor(parts: LaneParts & { owner: string }) {
    this.#parts = parts
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log, database } = this.#parts
    await runLoop({ name: 'find hosts', everyMs: 1_000, signal, log, database }, () => this.#pass(signal))
    await Promise.all([...this.#lanes.values()].map((lane) => lane.stop()))
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { db, owner, times, agents } = this.#parts
    const hosts = await listAgents(db.pool)
    for (const { hostId, agentUrl } of hosts) agents.place(hostId, agentUrl)
    for (const host of hosts) {
      const lane = this.#lanes.get(host.hostId)
      if (lane && !lane.ended) continue
      this.#lanes.delete(host.hostId)
      const hold = await takeLease(db.pool, { name: `observe:${host.hostId}`, owner, leaseMs: times.leaseMs })
      if (hold && !signal.aborted) this.#lanes.set(host.hostId, new HostLane(host, hold, this.#parts))
    }
    for (const [hostId, lane] of this.#lanes) {
      if (hosts.some((host) => host.hostId === hostId)) continue
      this.#lanes.delete(hostId)
      void lane.stop()
    }
  }
}
