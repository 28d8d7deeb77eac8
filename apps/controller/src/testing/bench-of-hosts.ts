import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readClusterOf, readOperationLog, showOperation } from '@floe/db'
import { createTestDatabase } from '@floe/db/testing'
import {
  type ClusterMember,
  type ClusterObserved,
  type OperationInput,
  type OperationKind,
  primaryOf,
} from '@floe/domain'
import type { Patience } from '@floe/operations'
import { submitOperation } from '@floe/operations/submit'
import { startThrowawayHosts, type ThrowawayHost, waitUntil } from '@floe/testkit'
import pg from 'pg'
import { inject } from 'vitest'
import { startController } from '../controller'
import { addressRule } from '../webhook-address'
import { actor, keptLog } from './bench-of-controllers'
import { clientTls } from './client-tls'
import { WriteLedger } from './write-ledger'

/** A task as the agent's log tells of it. */
type TaskLine = { event: string; operationId: string; step: string; attempt: number; state?: string }

/**
 * A control database and hosts with real agents, each in a network of its own, and what tests of clusters ask of them.
 * The first host is the controller's own. Needs root.
 */
export async function benchOfHosts(engineConnectionString: string, o: { hosts: number; instances?: number }) {
  const password = randomBytes(12).toString('base64url')
  const db = await createTestDatabase(engineConnectionString)
  const net = await startThrowawayHosts(o.hosts, {
    bundle: inject('agentBundle'),
    instances: o.instances ?? 12,
  })
  const controllers: ReturnType<typeof startController>[] = []
  const host = (n: number) => net.hosts[n - 1] as ThrowawayHost
  for (const { hostId, name, home } of net.hosts)
    await db.pool.query('INSERT INTO host (id, name, "agentUrl") VALUES ($1, $2, $3)', [
      hostId,
      name,
      home.agentUrl,
    ])
  const own = { hostId: host(1).hostId, name: host(1).name, agentUrl: host(1).home.agentUrl }

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
  /** The operation, which has to have succeeded; throws with its fault and log otherwise. */
  async function succeeded(operationId: string) {
    const operation = await ended(operationId).catch(() => showOperation(db.pool, operationId))
    if (operation?.state === 'succeeded') return operation
    const log = await readOperationLog(db.pool, { operationId })
    throw new Error(
      `${operation?.kind} ${operation?.state}: ${JSON.stringify(operation?.fault)}\n${log.map((l) => l.text).join('\n')}`,
    )
  }
  const clusterOf = async (instanceId: string) =>
    (await readClusterOf(db.pool, instanceId)) as ClusterObserved
  async function ask<T>(m: ClusterMember | undefined, statement: string): Promise<T[]> {
    const client = new pg.Client({
      ...clientTls,
      host: m?.connection?.host ?? '',
      port: m?.connection?.port ?? 0,
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
    password,
    host,
    own,
    submit,
    endedNow,
    ended,
    succeeded,
    clusterOf,
    ask,
    /** Submits an operation that has to succeed. */
    carryOut: async (kind: OperationKind, input: unknown, hostId?: string) =>
      succeeded(await submit(kind, input, hostId)),
    /** A controller in this process. */
    start({ patience }: { patience?: Patience } = {}) {
      const controller = startController({
        connectionString: db.as.controller.connectionString,
        authority: net.authority.signing,
        identity: () => host(1).home.identities.task,
        authSecret: 'a secret of the tests',
        // receivers of the tests are on this machine
        webhookRule: addressRule([], ['127.0.0.1']),
        host: own,
        log: keptLog(),
        ...(patience ? { patience } : {}),
      })
      controllers.push(controller)
      return controller
    },
    /** Writes to whichever member is the primary until it is stopped. */
    async ledger(instanceId: string) {
      const { members } = await clusterOf(instanceId)
      const addresses = members.flatMap((m) => (m.connection ? [m.connection] : []))
      return new WriteLedger({ user: 'postgres', database: 'postgres', password }, () => addresses, 10)
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
      await net.remove()
      await db.drop()
    },
  }
}
export type BenchOfHosts = Awaited<ReturnType<typeof benchOfHosts>>
