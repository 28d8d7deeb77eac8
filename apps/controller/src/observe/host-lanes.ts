import { closeIncidents, listAgents, listOpenIncidentsOfHost, takeLease } from '@floe/db'
import { pause } from '@floe/host/wait'
import { runLoop, type Wake } from '../loop'
import type { ControllerParts } from '../parts'
import { HostLane, type LaneParts } from './host-lane'

type Parts = ControllerParts & LaneParts & { wake: Wake }

/** Keeps a lane for every host whose lease this controller can get; a revoked host has none. */
export class HostLanes {
  readonly #parts: Parts
  readonly #lanes = new Map<string, HostLane>()
  readonly #ending = new Map<string, Promise<void>>()
  #firstPass: () => void = () => {}
  readonly #passed = new Promise<void>((resolve) => {
    this.#firstPass = resolve
  })
  /** Revoked hosts that were left behind. */
  readonly #left = new Set<string>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log, database, wake } = this.#parts
    await runLoop({ name: 'find hosts', everyMs: 1_000, signal, log, database, wake }, () =>
      this.#pass(signal),
    )
    this.#firstPass()
    await Promise.all([...[...this.#lanes.values()].map((lane) => lane.stop()), ...this.#ending.values()])
  }

  /**
   * Resolves once each host that this controller observes was heard: what is recorded has been compared with what they report
   * then. One that does not answer is tried again, and waited for no longer than `boundMs` and its first question; one that
   * takes its time to answer, or whose answer takes its time here, is waited for.
   */
  async lookedOnce(boundMs: number, signal: AbortSignal): Promise<void> {
    const looked = new AbortController()
    const bound = pause(boundMs, AbortSignal.any([signal, looked.signal]))
    await this.#passed
    await Promise.all(
      [...this.#lanes.values()].map((lane) => Promise.race([lane.looked, Promise.all([lane.asked, bound])])),
    )
    looked.abort()
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
      if (lane && !lane.ended) this.#end(host.hostId, lane)
      // what still ends gives the very lease back that the next one would hold
      if (this.#ending.has(host.hostId)) continue
      this.#lanes.delete(host.hostId)
      const hold = await takeLease(db.pool, { name: `observe:${host.hostId}`, owner, leaseMs: times.leaseMs })
      if (hold && !signal.aborted) this.#lanes.set(host.hostId, new HostLane(host, hold, this.#parts))
    }
    this.#firstPass()
    for (const [hostId, lane] of this.#lanes) {
      if (hosts.some((host) => host.hostId === hostId)) continue
      this.#end(hostId, lane, () => this.#leave(hostId))
    }
    // also those that were revoked while nobody looked
    for (const { hostId, revoked } of all) {
      if (!revoked) this.#left.delete(hostId)
      else if (!this.#left.has(hostId) && !this.#ending.has(hostId)) await this.#leave(hostId)
    }
  }

  /** Ends a lane without waiting for it: its host may be slow. */
  #end(hostId: string, lane: HostLane, then: () => Promise<void> = async () => {}): void {
    this.#lanes.delete(hostId)
    const ended = lane
      .stop()
      .then(then)
      .catch((error) => this.#parts.database.missed(error))
      .finally(() => {
        this.#ending.delete(hostId)
        this.#parts.wake.now()
      })
    this.#ending.set(hostId, ended)
  }

  /** What was wrong with a host that was revoked or removed is nobody's concern any more. */
  async #leave(hostId: string): Promise<void> {
    const { db, log } = this.#parts
    const because = 'The host was revoked or removed and is no longer observed.'
    const open = await listOpenIncidentsOfHost(db.pool, hostId)
    const keys = open.map((incident) => incident.key)
    for (const key of await closeIncidents(db.pool, keys, because)) log.info('incident.closed', { key })
    this.#left.add(hostId)
    log.info('host.left', { hostId })
  }
}
