import { randomUUID } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import type {
  InstanceObserved,
  TaskInput,
  TaskKey,
  TaskKind,
  TaskResult,
  TaskStatus,
} from '@floe/agent-contract'
import { createAgentClient } from '@floe/agent-contract/client'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { type AgentRight, formatFault, type InstanceId, type InstanceName } from '@floe/domain'
import { makeThrowawayHome, ThrowawayAgent, type ThrowawayHome, waitUntil } from '@floe/testkit'
import pg from 'pg'
import { inject } from 'vitest'

export type TaskRequest = TaskInput extends infer T
  ? T extends { kind: TaskKind }
    ? Omit<T, 'instanceId' | 'name'> & { instanceId: string; name?: string }
    : never
  : never

const long = process.env.FLOE_TEST_LONG === '1'
/** Of the agent's log, in the message of a test that waited in vain. */
const LOG_LINES = 20

/**
 * Moments in ms after the start of a task at which the agent is killed. Every one takes seconds and may find the task at any
 * place, so every other one is tried, and all of them by --long.
 */
export const killedAt = (...moments: number[]): number[] => moments.filter((_, i) => long || i % 2 === 1)

/** An agent with a client of each right, and the verbs that tests say. */
export class AgentFixture {
  readonly agent: ThrowawayAgent
  /** One for each right and process of the agent: the connections of one that was killed are gone. */
  readonly #clients = new Map<string, ReturnType<typeof createAgentClient>>()

  private constructor(agent: ThrowawayAgent) {
    this.agent = agent
  }

  static async start(
    instances = 8,
    within: (
      home: ThrowawayHome,
    ) => Promise<((command: readonly string[]) => string[]) | undefined> = async () => undefined,
    overrides: NonNullable<Parameters<typeof makeThrowawayHome>[0]>['overrides'] = {},
  ): Promise<AgentFixture> {
    const home = await makeThrowawayHome({ instances, overrides })
    const fixture = new AgentFixture(new ThrowawayAgent(home, inject('bundle'), await within(home)))
    await fixture.agent.start()
    return fixture
  }

  get installation() {
    return this.agent.home.installation
  }

  get task() {
    return this.#client('task')
  }

  get read() {
    return this.#client('read')
  }

  #client(right: AgentRight) {
    const key = `${right} ${this.agent.pid}`
    const client =
      this.#clients.get(key) ?? createAgentClient({ ...this.agent.home.endpoint(right), timeoutMs: 15_000 })
    this.#clients.set(key, client)
    return client.trpc
  }

  newKey(step = 'step', attempt = 1): TaskKey {
    return { operationId: randomUUID(), step, attempt }
  }

  async begin(task: TaskRequest, key = this.newKey()): Promise<TaskKey> {
    await this.task.task.start.mutate({ key, task: task as never })
    return key
  }

  /** Waits for a task's end; also over a death of the agent. */
  async ended(key: TaskKey, boundMs = 60_000): Promise<TaskStatus> {
    const client = this.read
    return waitUntil(
      `task ${key.step} ends`,
      async () => {
        const status = await client.task.check.query({ key })
        return status.state !== 'running' && status.state !== 'not-started' ? status : null
      },
      boundMs,
    )
  }

  async run(task: TaskRequest): Promise<TaskStatus> {
    return this.ended(await this.begin(task))
  }

  /** Runs a task that has to succeed. */
  async must<K extends TaskKind>(task: Extract<TaskRequest, { kind: K }>): Promise<TaskResult<K>> {
    const status = await this.run(task as TaskRequest)
    if (status.state !== 'succeeded')
      throw new Error(`${task.kind} ${status.state}: ${status.fault ? formatFault(status.fault) : ''}`)
    return status.result as TaskResult<K>
  }

  async create(
    o: { name?: string; settings?: Record<string, string>; password?: string } = {},
  ): Promise<string> {
    const instanceId = randomUUID()
    await this.must({
      kind: 'create-instance',
      instanceId,
      name: o.name ?? `t-${instanceId.slice(0, 8)}`,
      settings: o.settings ?? {},
      ownerPasswordVerifier: scramVerifier(o.password ?? 'open sesame'),
    } as Extract<TaskRequest, { kind: 'create-instance' }>)
    return instanceId
  }

  async createRunning(o: Parameters<AgentFixture['create']>[0] = {}): Promise<string> {
    const instanceId = await this.create(o)
    await this.must({ kind: 'start-instance', instanceId })
    return instanceId
  }

  async observed(instanceId: string): Promise<InstanceObserved | undefined> {
    const report = await this.read.report.read.query({ after: null })
    return report.instances.find((i) => i.instanceId === instanceId)
  }

  /** What is waited for in vain is told with the report's words, and with the last that the agent logged about the instance. */
  async waitForState(instanceId: string, state: string): Promise<InstanceObserved> {
    let seen: InstanceObserved | undefined
    try {
      return await waitUntil(`instance is ${state}`, async () => {
        seen = await this.observed(instanceId)
        return seen?.state === state ? seen : null
      })
    } catch (cause) {
      const logged = this.agent.output.split('\n').filter((line) => line.includes(instanceId))
      const words = `${(cause as Error).message}: it is ${seen?.state}, ${seen?.because}`
      throw new Error([words, ...logged.slice(-LOG_LINES)].join('\n'), { cause })
    }
  }

  /** Connects as a person does. */
  async connect(instanceId: string, password = 'open sesame'): Promise<pg.Client> {
    const seen = await this.observed(instanceId)
    return this.connectTo(seen?.port, password)
  }

  /** Asks an instance while there is no agent: its port stands in its postmaster.pid. */
  async queryPort<T>(instanceId: string, sql: string): Promise<T[]> {
    const lines = readFileSync(`${this.dataDirectory(instanceId)}/postmaster.pid`, 'utf8').split('\n')
    const client = await this.connectTo(Number(lines[3]), 'open sesame')
    try {
      return (await client.query(sql)).rows as T[]
    } finally {
      await client.end()
    }
  }

  /** Connects as a person does who knows the port: the agent is not asked. */
  async connectTo(
    port: number | undefined,
    password = 'open sesame',
    ssl: pg.ClientConfig['ssl'] = false,
  ): Promise<pg.Client> {
    const client = new pg.Client({
      ssl,
      host: '127.0.0.1',
      port,
      user: 'postgres',
      database: 'postgres',
      password,
    })
    client.on('error', () => {})
    await client.connect()
    return client
  }

  async query<T>(instanceId: string, sql: string): Promise<T[]> {
    const client = await this.connect(instanceId)
    try {
      return (await client.query(sql)).rows as T[]
    } finally {
      await client.end()
    }
  }

  /** Stops every engine that runs: what no test looks at any more costs the next ones processor time. */
  async stopAll(): Promise<void> {
    const { instances } = await this.read.report.read.query({ after: null })
    const running = instances.filter(({ state }) => state === 'running')
    await Promise.all(
      running.map(({ instanceId }) => this.run({ kind: 'stop-instance', instanceId, mode: 'immediate' })),
    )
  }

  dataDirectory(instanceId: string): string {
    return `${this.installation.instancesDirectory}/${instanceId}/pgdata`
  }

  /** Who its files belong to, and its processes run as. */
  userOf(instanceId: string): { uid: number; gid: number } {
    const { uid, gid } = statSync(this.dataDirectory(instanceId))
    return { uid, gid }
  }

  async remove(): Promise<void> {
    await Promise.all([...this.#clients.values()].map((c) => c.close()))
    await this.agent.remove()
  }
}

/** Brands for calls that take them. */
export const asInstanceId = (id: string) => id as InstanceId
export const asInstanceName = (name: string) => name as InstanceName
