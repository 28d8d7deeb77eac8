import { randomUUID } from 'node:crypto'
import type { TaskResult, TaskStatus, Upstream } from '@floe/agent-contract'
import { waitUntil } from '@floe/testkit'
import type { AgentFixture } from './agent-fixture'

/** The verbs that tests of standbys say, on one agent that keeps all members. */
export class StandbyFixture {
  readonly f: AgentFixture
  readonly names = new Map<string, string>()
  /** The roles that members answered, by their names. */
  readonly roles = new Map<string, string>()

  constructor(f: AgentFixture) {
    this.f = f
  }

  async primary(name: string, settings: Record<string, string> = {}): Promise<string> {
    const id = await this.f.createRunning({ name, settings })
    this.names.set(id, name)
    return id
  }

  async #any(task: { kind: string } & Record<string, unknown>): Promise<TaskStatus> {
    return this.f.run(task as never)
  }

  async must<T>(task: { kind: string } & Record<string, unknown>): Promise<T> {
    const status = await this.#any(task)
    if (status.state !== 'succeeded')
      throw new Error(
        `${task.kind} ${status.state}: ${status.fault?.code} ${status.fault?.message} ${status.fault?.detail}`,
      )
    return status.result as T
  }

  run = (task: { kind: string } & Record<string, unknown>) => this.#any(task)

  /** Prepares and admits a member; answers how it reaches the primary. */
  async admit(primary: string, standby: string, name: string, slot = true): Promise<Upstream> {
    this.names.set(standby, name)
    const prepared = await this.must<TaskResult<'prepare-standby'>>({
      kind: 'prepare-standby',
      instanceId: standby,
      name,
    })
    this.roles.set(name, prepared.replicationRole as string)
    return this.admitPrepared(primary, name, prepared.replicationVerifier, slot)
  }

  /** Admits a member that was prepared; without a verifier its role is there already. */
  async admitPrepared(
    primary: string,
    name: string,
    verifier: string | null,
    slot: boolean,
  ): Promise<Upstream> {
    const { upstream } = await this.must<TaskResult<'admit-standby'>>({
      kind: 'admit-standby',
      instanceId: primary,
      standbyName: name,
      verifier,
      slot,
      role: this.roles.get(name),
      roles: [...this.roles.values()],
    })
    return upstream
  }

  async dismiss(primary: string, name: string, keepRole: boolean): Promise<void> {
    const role = this.roles.get(name)
    if (!keepRole) this.roles.delete(name)
    await this.must({
      kind: 'dismiss-standby',
      instanceId: primary,
      standbyName: name,
      keepRole,
      role,
      roles: [...this.roles.values()],
    })
  }

  async standby(primary: string, name: string): Promise<{ id: string; upstream: Upstream }> {
    const id = randomUUID()
    const upstream = await this.admit(primary, id, name)
    await this.must({ kind: 'clone-standby', instanceId: id, upstream, replace: false })
    await this.must({ kind: 'follow-upstream', instanceId: id, upstream })
    return { id, upstream }
  }

  async caughtUp(primary: string, standby: string): Promise<void> {
    const [{ lsn } = { lsn: '' }] = await this.f.query<{ lsn: string }>(
      primary,
      'select pg_current_wal_flush_lsn()::text as lsn',
    )
    await waitUntil('the standby has caught up', async () => {
      const [row] = await this.f.query<{ there: boolean }>(
        standby,
        `select pg_last_wal_replay_lsn() >= '${lsn}'::pg_lsn as there`,
      )
      return row?.there
    })
  }
}
