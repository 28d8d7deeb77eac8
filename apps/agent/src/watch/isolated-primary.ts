import { randomUUID } from 'node:crypto'
import { AGENT_ROLE, type HeldBack, type ReplicationObserved, toFault } from '@floe/domain'
import type { Log } from '@floe/host/log'
import type pg from 'pg'
import { readClusterSettings, readFence, writeClusterSettings } from '../engine/cluster/member-files'
import type { Instance } from '../engine/instance'
import type { Instances } from '../engine/instances'
import { reload } from '../engine/process/reload'
import { BY_ITSELF, type TaskRunner } from '../tasks/runner/runner'

const LOOK_MS = 1_000
const STANDSTILL_MS = 5_000
/** What new transactions of an isolated primary are. */
export const READ_ONLY_SETTING = 'default_transaction_read_only'

type Seen = {
  /** When a standby was last heard, or the console last asked; by the monotonic clock. */
  heardAt: number
  /** Each standby's last answer, as its own clock says: moved on, it was heard. */
  replies: string
  lookedAt: number
  isolated: boolean
  busy: boolean
}

/** The standbys' last answers as one word; the same while none of them has answered again. */
const repliesOf = (replication: ReplicationObserved | null): string =>
  (replication?.standbys ?? [])
    .filter((s) => s.state === 'streaming')
    .map((s) => `${s.applicationName} ${s.replyAt}`)
    .join(' ')

/**
 * A primary of an automatic cluster that neither a standby nor the console reaches may have been replaced: clients that still
 * reach it would read what is old. After the time that its cluster says its agent ends its clients, lets transactions be
 * read-only, or stops it. It is undone by the first standby or console that is heard again. Nothing else rests on it: it
 * can acknowledge no commit that waits for standbys anyway, so no clock decides about data.
 */
export class IsolatedPrimaries {
  readonly #instances: Instances
  readonly #tasks: TaskRunner
  readonly #log: Log
  readonly #seen = new Map<string, Seen>()
  #askedAt = performance.now()
  #timer: NodeJS.Timeout | null = null

  constructor(instances: Instances, tasks: TaskRunner, log: Log) {
    this.#instances = instances
    this.#tasks = tasks
    this.#log = log
  }

  start(): void {
    this.#timer = setInterval(() => {
      for (const instance of this.#instances.list()) void this.look(instance, performance.now())
    }, LOOK_MS)
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer)
  }

  /** The console has asked this agent for a report. */
  asked(now = performance.now()): void {
    this.#askedAt = now
  }

  async look(instance: Instance, now: number): Promise<void> {
    const { instanceId } = instance
    const heldBack = instance.registered.primaryKnown?.heldBack ?? null
    const live = instance.sampler.identity
    if (live === null || live.inRecovery || readFence(instance.layout)) {
      this.#seen.delete(instanceId)
      return
    }
    const seen = this.#seen.get(instanceId) ?? {
      heardAt: now,
      replies: '',
      lookedAt: now,
      isolated: false,
      busy: false,
    }
    this.#seen.set(instanceId, seen)
    const replies = repliesOf(live.replication)
    if (replies !== seen.replies && replies !== '') seen.heardAt = now
    seen.replies = replies
    // who stood still himself has heard nobody, and that says nothing of them
    if (now - seen.lookedAt > STANDSTILL_MS) seen.heardAt = now
    seen.lookedAt = now
    seen.heardAt = Math.max(seen.heardAt, this.#askedAt)
    const isolated = heldBack !== null && now - seen.heardAt >= heldBack.isolatedAfterMs
    if (seen.busy) return
    seen.busy = true
    try {
      if (isolated && heldBack) await this.#hold(instance, heldBack, seen, now)
      // also one that an agent before this one held
      else if (readClusterSettings(instance.layout).has(READ_ONLY_SETTING)) await this.#release(instance)
      seen.isolated = isolated
    } catch (error) {
      this.#log.warn('instance.isolated_not_held', { instanceId, reason: toFault(error).message })
    } finally {
      seen.busy = false
    }
  }

  async #hold(instance: Instance, { isolatedPrimary }: HeldBack, seen: Seen, now: number): Promise<void> {
    const { instanceId } = instance
    if (!seen.isolated)
      this.#log.warn('instance.isolated', {
        instanceId,
        silentMs: Math.round(now - seen.heardAt),
        action: isolatedPrimary,
      })
    if (isolatedPrimary === 'demote') {
      if (instance.activity !== null) return
      this.#tasks.start({
        key: { operationId: randomUUID(), step: BY_ITSELF, attempt: 1 },
        task: { kind: 'stop-instance', instanceId: instance.registered.instanceId, mode: 'fast' },
      })
      return
    }
    await instance.connect(async (client) => {
      if (isolatedPrimary === 'read-only' && !seen.isolated) {
        const settings = readClusterSettings(instance.layout)
        settings.set(READ_ONLY_SETTING, 'on')
        writeClusterSettings(instance.layout, settings, instance.user)
        await reload(instance, client)
      }
      if (isolatedPrimary === 'end-clients' || !seen.isolated) await endClients(client)
    })
  }

  async #release(instance: Instance): Promise<void> {
    const settings = readClusterSettings(instance.layout)
    settings.delete(READ_ONLY_SETTING)
    writeClusterSettings(instance.layout, settings, instance.user)
    await instance.connect((client) => reload(instance, client))
    this.#log.info('instance.isolated_no_more', { instanceId: instance.instanceId })
  }
}

/** A commit of theirs that waits for a standby ends with its connection, unacknowledged. */
async function endClients(client: pg.Client): Promise<void> {
  await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid() and usename is distinct from $1`,
    [AGENT_ROLE],
  )
}
