import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { readClusterOf, readOperationLog, showOperation } from '@floe/db'
import { createTestDatabase, type TestDatabase } from '@floe/db/testing'
import {
  automaticPageRepair,
  type ClusterMember,
  type ClusterObserved,
  memberOfSource,
  type OperationInput,
  type OperationKind,
  primaryOf,
} from '@floe/domain'
import { submitOperation } from '@floe/operations/submit'
import { startThrowawayHosts, type ThrowawayHosts, ThrowawayNetwork, waitUntil } from '@floe/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { startController } from './controller'
import { actor, keptLog } from './testing/bench-of-controllers'
import { clientTls } from './testing/client-tls'
import { addressRule } from './webhook-address'

const missing = ThrowawayNetwork.missing()
const password = randomBytes(12).toString('base64url')

describe.skipIf(missing !== null)(`page repair between two hosts${missing ? ` (${missing})` : ''}`, () => {
  let db: TestDatabase
  let net: ThrowawayHosts
  let controller: ReturnType<typeof startController>
  const firstId = randomUUID()
  const secondId = randomUUID()

  const hostOf = (n: number) => {
    const { hostId, name, home } = net.hosts[n] as ThrowawayHosts['hosts'][number]
    return { hostId, name, agentUrl: home.agentUrl }
  }
  beforeAll(async () => {
    db = await createTestDatabase(inject('engineConnectionString'))
    net = await startThrowawayHosts(2, { bundle: inject('agentBundle'), instances: 4 })
    for (const n of [0, 1]) {
      const { hostId, name, agentUrl } = hostOf(n)
      await db.pool.query('INSERT INTO host (id, name, "agentUrl") VALUES ($1, $2, $3)', [
        hostId,
        name,
        agentUrl,
      ])
    }
    controller = startController({
      connectionString: db.as.controller.connectionString,
      authority: net.authority.signing,
      identity: () => (net.hosts[0] as ThrowawayHosts['hosts'][number]).home.identities.task,
      authSecret: 'a secret of the tests',
      webhookRule: addressRule([], ['127.0.0.1']),
      host: hostOf(0),
      log: keptLog(),
    })
    await carryOut(
      'create-instance',
      { instanceId: firstId, name: 'one', settings: {}, ownerPasswordVerifier: scramVerifier(password) },
      hostOf(0).hostId,
    )
  }, 180_000)
  afterAll(async () => {
    await controller?.stop()
    await net?.remove()
    await db?.drop()
  })

  async function ended<K extends OperationKind>(kind: K, input: unknown, hostId?: string) {
    const { operationId } = await submitOperation(db.as.web, {
      kind,
      input: input as OperationInput<K>,
      actor,
      hostId,
    })
    return waitUntil(
      `${kind} ended`,
      async () => {
        const seen = await showOperation(db.pool, operationId)
        return seen?.endedAt ? seen : null
      },
      60_000,
    )
  }
  /** Carries out an operation that has to succeed; answers its log. */
  async function carryOut<K extends OperationKind>(kind: K, input: unknown, hostId?: string) {
    const operation = await ended(kind, input, hostId)
    const log = (await readOperationLog(db.pool, { operationId: operation.operationId })).map((l) => l.text)
    if (operation.state !== 'succeeded')
      throw new Error(`${kind}: ${JSON.stringify(operation.fault)}\n${log.join('\n')}`)
    return log.join('\n')
  }
  const cluster = async () => (await readClusterOf(db.pool, firstId)) as ClusterObserved
  const member = async (name: string) =>
    (await cluster()).members.find((m) => m.name === name) as ClusterMember
  const directoryOf = (m: ClusterMember) => {
    const host = net.hosts.find((h) => h.name === m.hostName) as ThrowawayHosts['hosts'][number]
    return join(host.home.installation.instancesDirectory, m.instanceId)
  }
  async function ask<T>(name: string, statement: string): Promise<T[]> {
    const m = await member(name)
    const client = new pg.Client({
      ...clientTls,
      host: m.connection?.host ?? '',
      port: m.connection?.port ?? 0,
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
  /** Waits until a member has found exactly these healthy. */
  const healthySources = (name: string, wanted: string[]) =>
    waitUntil(
      `"${name}" has found ${wanted.join(', ') || 'nobody'} healthy`,
      async () => {
        const c = await cluster()
        const p = (await member(name)).protection
        const found = p?.sources.filter((s) => s.healthy).map((s) => memberOfSource(c, s.source)?.name)
        return p && JSON.stringify(found) === JSON.stringify(wanted) && p.sources.length === wanted.length
          ? p
          : null
      },
      30_000,
    )
  /** The role that a member asks for pages with. */
  const roleOf = async (name: string) => (await member(name)).logins?.repair as string
  const setting = (instanceId: string, name: string, value: string | null) =>
    ended('change-settings', { instanceId, changes: [{ name, value }] })

  test('without a standby full_page_writes stays on, with the reason', async () => {
    const refused = await setting(firstId, 'full_page_writes', 'off')
    expect(refused.fault).toMatchObject({ code: 'setting.unprotected' })
    expect(refused.fault?.hint).toContain('Create a standby')
  })

  test('a standby is a source by being created, asked as a role that may do nothing else', async () => {
    const { clusterId } = await cluster()
    const log = await carryOut(
      'create-standby',
      { instanceId: secondId, name: 'one-2', clusterId },
      hostOf(1).hostId,
    )
    expect(log).toContain('torn pages of the primary are fetched from one-2')
    await healthySources('one', ['one-2'])
    await healthySources('one-2', ['one'])
    expect((await cluster()).pageRepair).toEqual(automaticPageRepair)
    const roles = await ask(
      'one',
      `select rolname, rolsuper, rolreplication, rolcreaterole,
              has_function_privilege(rolname, 'pg_catalog.polar_page_repair_read(oid[], oid[], oid[], int4[], int8[])', 'execute') as reads
         from pg_roles where rolname like 'floe\\_repair\\_%' order by rolname collate "C"`,
    )
    const may = { rolsuper: false, rolreplication: false, rolcreaterole: false, reads: true }
    expect(roles).toEqual(
      [
        { rolname: await roleOf('one'), ...may },
        { rolname: await roleOf('one-2'), ...may },
      ].sort((a, b) => (a.rolname < b.rolname ? -1 : 1)),
    )
    expect(await roleOf('one-2')).toMatch(/^floe_repair_one_2_[0-9a-f]{16}$/)
  })

  test('the password lies in a file that only the engine’s user reads, and nowhere else', async () => {
    const m = await member('one')
    const file = join(directoryOf(m), 'page-repair.pgpass')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const secret = readFileSync(file, 'utf8').trim().split(':').at(-1) as string
    expect(secret.length).toBeGreaterThan(20)
    expect(readFileSync(join(directoryOf(m), 'pgdata/floe.cluster.conf'), 'utf8')).not.toContain(secret)
    const kept = await db.pool.query(
      'SELECT result FROM operation_step UNION ALL SELECT result FROM operation',
    )
    expect(JSON.stringify(kept.rows)).not.toContain(secret)
    expect(readFileSync(join(directoryOf(m), 'pgdata/floe_hba.conf'), 'utf8')).toContain(
      await roleOf('one-2'),
    )
  })

  test('pages are asked for over TLS, from who proves by channel binding that it is a member', async () => {
    const [{ sources } = { sources: '' }] = await ask<{ sources: string }>(
      'one',
      `select current_setting('polar_page_repair_sources') as sources`,
    )
    expect(sources).toContain("sslmode='require' channel_binding='require'")
    const asking = await waitUntil('the primary asks its source', async () => {
      const rows = await ask<{ ssl: boolean }>(
        'one-2',
        `select ssl from pg_stat_ssl join pg_stat_activity using (pid) where usename = '${await roleOf('one')}'`,
      )
      return rows.length > 0 ? rows : null
    })
    expect(asking.every((row) => row.ssl)).toBe(true)
  })

  test('full_page_writes may be off then, and the instance says by whom it is protected', async () => {
    expect(await setting(firstId, 'full_page_writes', 'off')).toMatchObject({ state: 'succeeded' })
    await ask('one', 'checkpoint')
    await waitUntil(
      'it is protected by the standby',
      async () => (await member('one')).protection?.state === 'protected',
      30_000,
    )
  })

  test('the last source is not given up while the primary writes no images', async () => {
    const { clusterId } = await cluster()
    await expect(
      ended('change-page-repair', {
        clusterId,
        instanceId: firstId,
        pageRepair: { enabled: true, excluded: [secondId] },
      }),
    ).rejects.toMatchObject({ fault: { code: 'page_repair.last_source' } })
  })

  test('after a switchover each takes pages from the other way round', async () => {
    await carryOut('switchover-cluster', { clusterId: (await cluster()).clusterId, instanceId: secondId })
    expect(primaryOf(await cluster())?.name).toBe('one-2')
    await healthySources('one-2', ['one'])
    await healthySources('one', ['one-2'])
  })

  test('a choice is wired on every member, kept, and taken back', async () => {
    const { clusterId } = await cluster()
    const off = { enabled: false, excluded: [] }
    await carryOut('change-page-repair', { clusterId, instanceId: secondId, pageRepair: off })
    expect((await cluster()).pageRepair).toEqual(off)
    await healthySources('one-2', [])
    await healthySources('one', [])
    expect(await ask('one-2', `select rolname from pg_roles where rolname like 'floe\\_repair\\_%'`)).toEqual(
      [],
    )
    // how long the operation itself waits to see them healthy is its patience, not what it promises
    await carryOut('change-page-repair', { clusterId, instanceId: secondId, pageRepair: automaticPageRepair })
    await healthySources('one-2', ['one'])
    await healthySources('one', ['one-2'])
  })

  test('a new copy is a source again, and a removed standby is nobody’s', async () => {
    await carryOut('rejoin-standby', { instanceId: firstId, method: 'clone' })
    await healthySources('one', ['one-2'])
    await healthySources('one-2', ['one'])
    const before = await cluster()
    await carryOut('remove-standby', { instanceId: firstId, confirmName: 'one' })
    const rest = await waitUntil('the other has no source', async () => {
      const c = await readClusterOf(db.pool, secondId)
      const [m] = c?.members ?? []
      return m?.protection?.sources.length === 0 ? c : null
    })
    expect(rest.members).toHaveLength(1)
    expect(rest.clusterId).toBe(before.clusterId)
  }, 60_000)
})
