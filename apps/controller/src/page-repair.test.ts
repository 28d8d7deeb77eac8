import { randomUUID } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { automaticPageRepair, memberOfSource, primaryOf } from '@floe/domain'
import { ThrowawayNetwork, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type HostsFixture, hostsFixture } from './testing/hosts-fixture'

const missing = ThrowawayNetwork.missing()

describe.skipIf(missing !== null)(`page repair between two hosts${missing ? ` (${missing})` : ''}`, () => {
  let fixture: HostsFixture
  let firstId: string
  const secondId = randomUUID()

  beforeAll(async () => {
    fixture = await hostsFixture({ hosts: 2, instances: 4 })
    await fixture.start()
    firstId = await fixture.createInstance('one')
  }, 180_000)
  afterAll(() => fixture?.remove(), 60_000)

  const cluster = () => fixture.clusterOf(firstId)
  const member = (name: string) => fixture.memberOf(firstId, name)
  const ask = async <T>(name: string, statement: string) => fixture.ask<T>(await member(name), statement)
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
    fixture.runToEnd('change-settings', { instanceId, changes: [{ name, value }] })

  test('without a standby full_page_writes stays on, with the reason', async () => {
    const refused = await setting(firstId, 'full_page_writes', 'off')
    expect(refused.fault).toMatchObject({ code: 'setting.unprotected' })
    expect(refused.fault?.hint).toContain('Create a standby')
  })

  test('a standby is a source by being created, asked as a role that may do nothing else', async () => {
    const { clusterId } = await cluster()
    const input = { instanceId: secondId, name: 'one-2', clusterId }
    const { operationId } = await fixture.carryOut('create-standby', input, fixture.host(2).hostId)
    expect(await fixture.logOf(operationId)).toContain('torn pages of the primary are fetched from one-2')
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
    const file = join(fixture.directoryOf(m), 'page-repair.pgpass')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const secret = readFileSync(file, 'utf8').trim().split(':').at(-1) as string
    expect(secret.length).toBeGreaterThan(20)
    expect(readFileSync(join(fixture.directoryOf(m), 'pgdata/floe.cluster.conf'), 'utf8')).not.toContain(
      secret,
    )
    const kept = await fixture.db.pool.query(
      'SELECT result FROM operation_step UNION ALL SELECT result FROM operation',
    )
    expect(JSON.stringify(kept.rows)).not.toContain(secret)
    expect(readFileSync(join(fixture.directoryOf(m), 'pgdata/floe_hba.conf'), 'utf8')).toContain(
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
      fixture.runToEnd('change-page-repair', {
        clusterId,
        instanceId: firstId,
        pageRepair: { enabled: true, excluded: [secondId] },
      }),
    ).rejects.toMatchObject({ fault: { code: 'page_repair.last_source' } })
  })

  test('after a switchover each takes pages from the other way round', async () => {
    await fixture.carryOut('switchover-cluster', {
      clusterId: (await cluster()).clusterId,
      instanceId: secondId,
    })
    expect(primaryOf(await cluster())?.name).toBe('one-2')
    await healthySources('one-2', ['one'])
    await healthySources('one', ['one-2'])
  })

  test('a choice is wired on every member, kept, and taken back', async () => {
    const { clusterId } = await cluster()
    const off = { enabled: false, excluded: [] }
    await fixture.carryOut('change-page-repair', { clusterId, instanceId: secondId, pageRepair: off })
    expect((await cluster()).pageRepair).toEqual(off)
    await healthySources('one-2', [])
    await healthySources('one', [])
    expect(await ask('one-2', `select rolname from pg_roles where rolname like 'floe\\_repair\\_%'`)).toEqual(
      [],
    )
    // how long the operation itself waits to see them healthy is its patience, not what it promises
    await fixture.carryOut('change-page-repair', {
      clusterId,
      instanceId: secondId,
      pageRepair: automaticPageRepair,
    })
    await healthySources('one-2', ['one'])
    await healthySources('one', ['one-2'])
  })

  test('a new copy is a source again, and a removed standby is nobody’s', async () => {
    await fixture.carryOut('rejoin-standby', { instanceId: firstId, method: 'clone' })
    await healthySources('one', ['one-2'])
    await healthySources('one-2', ['one'])
    const before = await cluster()
    await fixture.carryOut('remove-standby', { instanceId: firstId, confirmName: 'one' })
    const rest = await waitUntil('the other has no source', async () => {
      const c = await fixture.clusterOf(secondId)
      const [m] = c?.members ?? []
      return m?.protection?.sources.length === 0 ? c : null
    })
    expect(rest.members).toHaveLength(1)
    expect(rest.clusterId).toBe(before.clusterId)
  }, 60_000)
})
