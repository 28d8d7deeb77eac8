import type { InstanceObserved } from '@floe/agent-contract'
import { agentFault } from '@floe/agent-contract/client'
import {
  type Database,
  type InstanceSamples,
  insertCheckpoints,
  insertSamples,
  insertStalls,
  newestCheckpointSeq,
  newestSeq,
  newestStallSeq,
} from '@floe/db'
import type { Log } from '@floe/host/log'
import type { Agents, HostAgent } from '../agents'

type Questions = HostAgent['quick']

const SAMPLES_AT_ONCE = 600
const CHECKPOINTS_AT_ONCE = 200
/** A stopped instance has nothing new but its last words; it is asked every so many passes. */
const STOPPED_EVERY = 5

/** Fetches samples, checkpoints and stalls of one host's instances from where the database ends. */
export class TelemetryCollector {
  readonly #hostId: string
  readonly #parts: { db: Database; agents: Agents; log: Log }
  readonly #sampleSeq = new Map<string, number>()
  readonly #checkpointSeq = new Map<string, number>()
  readonly #stallSeq = new Map<string, number>()
  #instances: readonly InstanceObserved[] = []
  #passes = 0

  constructor(hostId: string, parts: { db: Database; agents: Agents; log: Log }) {
    this.#hostId = hostId
    this.#parts = parts
  }

  /** Which instances there are, by the newest report. */
  see(instances: readonly InstanceObserved[]): void {
    this.#instances = instances
    const ids = new Set<string>(instances.map((i) => i.instanceId))
    for (const known of [this.#sampleSeq, this.#checkpointSeq, this.#stallSeq])
      for (const id of known.keys()) if (!ids.has(id)) known.delete(id)
  }

  /** One pass: all instances at once, until each has no more than it can get at the next pass. */
  async readSamples(): Promise<void> {
    const all = this.#passes++ % STOPPED_EVERY === 0
    let asked = this.#instances.filter((i) => all || i.state !== 'stopped').map((i) => i.instanceId as string)
    while (asked.length > 0) {
      const { telemetry } = this.#parts.agents.of(this.#hostId).quick
      const answers = await Promise.all(asked.map((id) => this.#samplesOf(id, telemetry)))
      const batches = answers.filter((a) => a !== undefined)
      if (batches.length === 0) return
      const { refused } = await insertSamples(this.#parts.db.pool, batches)
      if (refused > 0) this.#parts.log.warn('telemetry.refused', { hostId: this.#hostId, samples: refused })
      // only what is stored is behind us
      for (const { instanceId, samples } of batches) {
        const last = samples.at(-1)
        if (last) this.#sampleSeq.set(instanceId, last.seq)
      }
      asked = batches.filter((b) => b.samples.length === SAMPLES_AT_ONCE).map((b) => b.instanceId)
    }
  }

  async #samplesOf(
    instanceId: string,
    telemetry: Questions['telemetry'],
  ): Promise<InstanceSamples | undefined> {
    const afterSeq =
      this.#sampleSeq.get(instanceId) ?? (await newestSeq(this.#parts.db.pool, instanceId)) ?? -1
    try {
      const answer = await telemetry.read.query({
        instanceId: instanceId as never,
        afterSeq,
        limit: SAMPLES_AT_ONCE,
      })
      if (answer.newestSeq !== null && answer.newestSeq < afterSeq) {
        // the agent's state was recreated; its numbers start again
        this.#parts.log.warn('telemetry.restarted', { instanceId, afterSeq, newestSeq: answer.newestSeq })
        this.#sampleSeq.set(instanceId, -1)
        return undefined
      }
      if (answer.oldestSeq !== null && afterSeq >= 0 && answer.oldestSeq > afterSeq + 1)
        this.#parts.log.warn('telemetry.hole', { instanceId, after: afterSeq, oldest: answer.oldestSeq })
      this.#sampleSeq.set(instanceId, afterSeq)
      return answer.samples.length > 0 ? { instanceId, samples: answer.samples } : undefined
    } catch (error) {
      this.#ignoreSilence(instanceId, error)
      return undefined
    }
  }

  /** One pass over the checkpoints and stalls of all instances. */
  async readCheckpoints(): Promise<void> {
    const { checkpoint } = this.#parts.agents.of(this.#hostId).quick
    await Promise.all(this.#instances.map((i) => this.#checkpointsOf(i.instanceId, checkpoint)))
  }

  async #checkpointsOf(
    instanceId: InstanceObserved['instanceId'],
    checkpoint: Questions['checkpoint'],
  ): Promise<void> {
    const { pool } = this.#parts.db
    const afterSeq = this.#checkpointSeq.get(instanceId) ?? (await newestCheckpointSeq(pool, instanceId))
    const afterStallSeq = this.#stallSeq.get(instanceId) ?? (await newestStallSeq(pool, instanceId))
    let answer: Awaited<ReturnType<typeof checkpoint.read.query>>
    try {
      answer = await checkpoint.read.query({
        instanceId,
        afterSeq,
        afterStallSeq,
        limit: CHECKPOINTS_AT_ONCE,
      })
    } catch (error) {
      return this.#ignoreSilence(instanceId, error)
    }
    const { checkpoints, stalls } = answer
    await insertCheckpoints(pool, instanceId, checkpoints)
    this.#checkpointSeq.set(instanceId, checkpoints.at(-1)?.seq ?? afterSeq)
    await insertStalls(pool, instanceId, stalls)
    this.#stallSeq.set(instanceId, stalls.at(-1)?.seq ?? afterStallSeq)
  }

  /** A silent agent is the report's business, an instance that is gone the next report's; anything else is logged. */
  #ignoreSilence(instanceId: string, error: unknown): void {
    const why = agentFault(error)
    if (why.code === 'agent.unreachable' || why.code === 'instance.not_found') return
    this.#parts.log.warn('telemetry.refused_by_agent', { instanceId, fault: why })
  }
}
