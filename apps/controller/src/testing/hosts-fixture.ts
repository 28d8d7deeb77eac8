import { randomBytes, randomUUID } from 'node:crypto'
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { readClusterOf, readOperationLog, showHost, showOperation } from '@floe/db'
import { createTestDatabase } from '@floe/db/testing'
import {
  type ClusterMember,
  type ClusterObserved,
  type OperationInput,
  type OperationKind,
  primaryOf,
} from '@floe/domain'
import { submitOperation } from '@floe/operations/submit'
import {
  makeScratchDirectory,
  makeThrowawayHome,
  startThrowawayHosts,
  type TestAuthority,
  ThrowawayAgent,
  type ThrowawayHost,
  testEnginePrefix,
  waitUntil,
} from '@floe/testkit'
import pg from 'pg'
import { inject } from 'vitest'
import { type ControllerOptions, startController } from '../controller'
import { addressRule } from '../webhook-address'
import { clientTls } from './client-tls'
import { ControllerProcess, makeControllerHome } from './controller-process'
import { actor, keptLog } from './controllers-fixture'
import { WriteLedger } from './write-ledger'

/** A task as the agent's log tells of it. */
type TaskLine = { event: string; operationId: string; step: string; attempt: number; state?: string }
type Host = Pick<ThrowawayHost, 'name' | 'hostId' | 'home' | 'agent'>
type Hosts = { authority: TestAuthority; hosts: Host[]; remove(): Promise<void> }

/**
 * A control database and hosts with real agents, each in a network of its own, and what tests of clusters ask of them.
 * The first host is the controller's own. Needs root: ask `ThrowawayNetwork.missing()` first.
 */
export const hostsFixture = (o: { hosts: number; instances?: number }) =>
  fixtureOf(() =>
    startThrowawayHosts(o.hosts, { bundle: inject('agentBundle'), instances: o.instances ?? 12 }),
  )
export type HostsFixture = Awaited<ReturnType<typeof hostsFixture>>

/** The same with one host that listens on the loopback interface only: what needs no partition needs no root. */
export const loopbackHostFixture = () =>
  fixtureOf(async () => {
    const home = await makeThrowawayHome({ overrides: { hostName: 'h1' } })
    const agent = new ThrowawayAgent(home, inject('agentBundle'))
    await agent.start()
    const { hostId, hostName: name } = home.installation
    return {
      authority: home.authority,
      hosts: [{ name, hostId, home, agent }],
      remove: () => agent.remove(),
    }
  })
export type LoopbackHostFixture = Awaited<ReturnType<typeof loopbackHostFixture>>

async function fixtureOf<H extends Hosts>(startHosts: () => Promise<H>) {
  const password = randomBytes(12).toString('base64url')
  const db = await createTestDatabase(inject('engineConnectionString'))
  const net = await startHosts()
  const log = keptLog()
  const controllers: ReturnType<typeof startController>[] = []
  const processes: ControllerProcess[] = []
  let engines: ReturnType<typeof makeScratchDirectory> | undefined
  let controllerHome: ReturnType<typeof makeControllerHome> | undefined
  const host = (n: number) => net.hosts[n - 1] as H['hosts'][number]
  const own = { hostId: host(1).hostId, name: host(1).name, agentUrl: host(1).home.agentUrl }
  // its own host is registered by the controller
  for (const { hostId, name, home } of net.hosts.slice(1))
    await db.pool.query('INSERT INTO host (id, name, "agentUrl") VALUES ($1, $2, $3)', [
      hostId,
      name,
      home.agentUrl,
    ])

  /** Resolves when a controller has the word of every host. */
  const allSeen = () =>
    waitUntil(
      'all hosts are seen',
      async () => {
        const seen = await Promise.all(net.hosts.map(({ hostId }) => showHost(db.pool, hostId)))
        return seen.every((h) => h?.state === 'online')
      },
      60_000,
    )
  async function submit<K extends OperationKind>(kind: K, input: unknown, hostId?: string): Promise<string> {
    const submitted = await submitOperation(db.as.web, {
      kind,
      input: input as OperationInput<K>,
      actor,
      hostId,
    })
    return submitted.operationId
  }
  const endedNow = async (operationId: string) => {
    const seen = await showOperation(db.pool, operationId)
    return seen?.endedAt ? seen : null
  }
  const ended = (operationId: string, boundMs = 180_000) =>
    waitUntil('the operation ended', () => endedNow(operationId), boundMs)
  const logOf = async (operationId: string) =>
    (await readOperationLog(db.pool, { operationId })).map((l) => l.text).join('\n')
  /** The operation, which has to have succeeded; throws with its fault and log otherwise. */
  async function succeeded(operationId: string) {
    const operation = await ended(operationId).catch(() => showOperation(db.pool, operationId))
    if (operation?.state === 'succeeded') return operation
    throw new Error(
      `${operation?.kind} ${operation?.state}: ${JSON.stringify(operation?.fault)}\n${await logOf(operationId)}`,
    )
  }
  /** Submits an operation that has to succeed. */
  const carryOut = async (kind: OperationKind, input: unknown, hostId?: string) =>
    succeeded(await submit(kind, input, hostId))
  const clusterOf = async (instanceId: string) =>
    (await readClusterOf(db.pool, instanceId)) as ClusterObserved
  const hostOf = (m: ClusterMember) => net.hosts.find((h) => h.hostId === m.hostId) as H['hosts'][number]
  /** What an instance answers to its owner. */
  async function ask<T>(
    of: { connection: { host: string; port: number } | null } | null | undefined,
    statement: string,
  ): Promise<T[]> {
    const client = new pg.Client({
      ...clientTls,
      host: of?.connection?.host ?? '',
      port: of?.connection?.port ?? 0,
      user: 'postgres',
      database: 'postgres',
      password,
      connectionTimeoutMillis: 3_000,
    })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query(statement)).rows as T[]
    } finally {
      await client.end()
    }
  }

  return {
    db,
    net,
    /** What the controllers of this process have logged. */
    log,
    password,
    host,
    own,
    allSeen,
    submit,
    endedNow,
    ended,
    logOf,
    succeeded,
    carryOut,
    clusterOf,
    hostOf,
    ask,
    /** Submits an operation and waits until it has ended, in whichever way. */
    runToEnd: async (kind: OperationKind, input: unknown, hostId?: string) =>
      ended(await submit(kind, input, hostId)),
    /** An instance whose owner has the fixture's password; answers its id. */
    async createInstance(
      name: string,
      on: Host = host(1),
      settings: Record<string, string> = {},
    ): Promise<string> {
      const instanceId = randomUUID()
      const input = { instanceId, name, settings, ownerPasswordVerifier: scramVerifier(password) }
      await carryOut('create-instance', input, on.hostId)
      return instanceId
    },
    /** A standby in the cluster of an instance; answers its id. */
    async createStandby(of: string, name: string, on: Host = host(1)): Promise<string> {
      const instanceId = randomUUID()
      const { clusterId } = await clusterOf(of)
      await carryOut('create-standby', { instanceId, name, clusterId }, on.hostId)
      return instanceId
    },
    memberOf: async (instanceId: string, name: string) =>
      (await clusterOf(instanceId)).members.find((m) => m.name === name) as ClusterMember,
    primaryOf: async (instanceId: string) => primaryOf(await clusterOf(instanceId)) as ClusterMember,
    /**
     * Installs another build of the engine on a host, as "./floe up" or a package does: its agent starts again, and engines
     * run on. `change` gets its prefix before that.
     */
    async installEngine(on: Host, build: string, change: (prefix: string) => void = () => {}) {
      engines ??= makeScratchDirectory()
      const prefix = join(engines.path, build)
      if (!existsSync(prefix)) {
        cpSync(testEnginePrefix(), prefix, { recursive: true, verbatimSymlinks: true })
        change(prefix)
      }
      const file = join(on.home.home, 'config.json')
      await on.agent.end('SIGTERM')
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), enginePrefix: prefix }))
      await on.agent.start()
      await waitUntil(
        'the installed engine is reported',
        async () => (await showHost(db.pool, on.hostId))?.facts?.engineBuild === build,
        60_000,
      )
      return build
    },
    /** Where the instance of a member lies on its host. */
    directoryOf: (m: ClusterMember) => join(hostOf(m).home.installation.instancesDirectory, m.instanceId),
    /** A controller in this process, when it has seen every host. */
    async start(more: Pick<ControllerOptions, 'patience' | 'settingCheckMs'> = {}) {
      const controller = startController({
        ...more,
        connectionString: db.as.controller.connectionString,
        authority: net.authority.signing,
        identity: () => host(1).home.identities.task,
        authSecret: 'a secret of the tests',
        // receivers of the tests are on this machine
        webhookRule: addressRule([], ['127.0.0.1']),
        host: own,
        log,
      })
      controllers.push(controller)
      await allSeen()
      return controller
    },
    /** A controller as an installation runs it, which a test can kill; `allSeen` says when the first one is at work. */
    startProcess(): ControllerProcess {
      controllerHome ??= makeControllerHome({
        connectionString: db.as.controller.connectionString,
        authority: net.authority,
        identity: host(1).home.identities.task,
        host: own,
      })
      const process = new ControllerProcess(inject('controllerBundle'), controllerHome.path)
      processes.push(process)
      return process
    },
    /** Writes to whichever member is the primary until it is stopped; without a pause as fast as it can. */
    async ledger(instanceId: string, everyMs = 10) {
      const { members } = await clusterOf(instanceId)
      const addresses = members.flatMap((m) => (m.connection ? [m.connection] : []))
      return new WriteLedger({ user: 'postgres', database: 'postgres', password }, () => addresses, everyMs)
    },
    /** Acknowledged rows that the primary does not have. */
    async lost(instanceId: string, acknowledged: readonly number[]) {
      const rows = await ask<{ n: number }>(primaryOf(await clusterOf(instanceId)), 'select n from ledger')
      const kept = new Set(rows.map((r) => r.n))
      return acknowledged.filter((n) => !kept.has(n))
    },
    /**
     * What is on the hosts, whatever the control database says: directories of instances and what lies beside a data
     * directory, by host; instances the agents know; slots and roles of the members that run, by member.
     */
    async traces(instanceId: string) {
      const { rows } = await db.pool.query<{ id: string; name: string }>('SELECT id, name FROM instance')
      const nameOf = (id: string) => rows.find((r) => r.id === id)?.name ?? id
      const directories: string[] = []
      const registered: string[] = []
      for (const { name, home } of net.hosts) {
        const root = home.installation.instancesDirectory
        for (const entry of readdirSync(root)) {
          // the agent's own, of no instance: a data directory that settings are tried on, kept for the next trial
          if (entry === '.trials') continue
          directories.push(`${name}/${nameOf(entry)}`)
          for (const beside of readdirSync(join(root, entry)))
            if (beside.startsWith('pgdata.')) directories.push(`${name}/${nameOf(entry)}/${beside}`)
        }
        const registry = join(home.home, 'agent/instances')
        if (existsSync(registry))
          for (const file of readdirSync(registry))
            registered.push(`${name}/${nameOf(file.split('.')[0] ?? '')}`)
      }
      const cluster = await clusterOf(instanceId)
      const slots: string[] = []
      const roles: string[] = []
      for (const m of cluster.members.filter((member) => member.state === 'running')) {
        for (const { s } of await ask<{ s: string }>(m, 'select slot_name as s from pg_replication_slots'))
          slots.push(`${m.name}: ${s}`)
        if (m.instanceId === cluster.primaryInstanceId)
          for (const { r } of await ask<{ r: string }>(
            m,
            `select rolname as r from pg_roles where rolname like 'floe\\_standby%'`,
          ))
            roles.push(r)
      }
      return {
        directories: directories.sort(),
        registered: registered.sort(),
        slots: slots.sort(),
        roles: roles.sort(),
      }
    },
    /** Lines of the agents' logs about the tasks of an operation. */
    taskLines(operationId: string): TaskLine[] {
      return net.hosts.flatMap(({ agent }) =>
        agent.output.split('\n').flatMap((line) => {
          if (!line.includes(operationId) || !line.includes('"event":"task.')) return []
          return [JSON.parse(line) as TaskLine]
        }),
      )
    },
    /** Tasks of an operation as the agents keep them: `step#attempt: state`. */
    keptTasks(operationId: string): string[] {
      return net.hosts
        .flatMap(({ home }) => {
          const directory = join(home.home, 'agent/tasks')
          return readdirSync(directory)
            .filter((file) => file.startsWith(operationId) && file.endsWith('.json'))
            .map((file) => JSON.parse(readFileSync(join(directory, file), 'utf8')))
        })
        .map(({ key, state }) => `${key.step}#${key.attempt}: ${state}`)
        .sort()
    },
    async remove() {
      await Promise.all(controllers.map((c) => c.stop()))
      await Promise.all(processes.map((p) => p.end('SIGKILL')))
      controllerHome?.remove()
      await net.remove()
      engines?.remove()
      await db.drop()
    },
  }
}
