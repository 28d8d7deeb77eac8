import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  askHostUpgrade,
  cancelHostUpgrade,
  inTransaction,
  lastHostUpgrade,
  listClustersOfHost,
  showHost,
  showInstance,
  showOperation,
} from '@floe/db'
import { type EngineBuild, type HostUpgrade, planHostUpgrade } from '@floe/domain'
import { ThrowawayNetwork, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ControllerProcess } from './testing/controller-process'
import { actor } from './testing/controllers-fixture'
import { type HostsFixture, hostsFixture } from './testing/hosts-fixture'

const missing = ThrowawayNetwork.missing()

/** Puts a program in the engine's place that does not start in this instance's directory. */
function refuseFor(prefix: string, directory: string): void {
  const engine = join(prefix, 'bin/postgres')
  renameSync(engine, `${engine}.real`)
  const refusal = `case "$*" in *"-D ${directory}/pgdata"*) echo 'FATAL:  no' >&2; exit 1;; esac`
  writeFileSync(engine, `#!/bin/sh\n${refusal}\nexec "$0.real" "$@"\n`, { mode: 0o755 })
}

/** The instances of a host are moved onto the engine that is installed there; none of what clients were told is lost. */
describe.skipIf(missing !== null)(`a host with another engine${missing ? ` (${missing})` : ''}`, () => {
  let fixture: HostsFixture
  let one: string
  let alone: string
  let controller: ControllerProcess

  beforeAll(async () => {
    fixture = await hostsFixture({ hosts: 2 })
    controller = fixture.startProcess()
    await fixture.allSeen()
    one = await fixture.createInstance('one')
    await fixture.createStandby(one, 'one-2')
    await fixture.createStandby(one, 'one-3', fixture.host(2))
    alone = await fixture.createInstance('alone')
    await fixture.ask(await fixture.primaryOf(one), 'create table ledger (n int primary key)')
    await fixture.ask(await fixture.primaryOf(alone), 'create table kept as select generate_series(1, 100) i')
  }, 180_000)
  afterAll(() => fixture?.remove())

  async function planOf(n: number) {
    const { hostId } = fixture.host(n)
    const host = await showHost(fixture.db.pool, hostId)
    if (!host) throw new Error('no host')
    return planHostUpgrade(
      { hostId, name: host.name, state: host.state, build: host.facts?.engineBuild ?? null },
      await listClustersOfHost(fixture.db.pool, hostId),
    )
  }
  /** Once all members are seen in a state that they may stay in. */
  const settledPlanOf = (n: number, clusters: string[]) =>
    waitUntil(
      'the plan is about these clusters and leaves nothing',
      async () => {
        const planned = await planOf(n)
        const about = planned.plan.clusters.filter(({ left }) => left.length === 0).map((c) => c.cluster)
        return about.join() === clusters.join() ? planned : null
      },
      30_000,
    )
  const following = () =>
    waitUntil(
      'both standbys stream',
      async () => {
        const { replication } = await fixture.primaryOf(one)
        return replication?.standbys.filter((s) => s.state === 'streaming').length === 2
      },
      30_000,
    )
  const switchToOne = async () => {
    const { clusterId } = await fixture.clusterOf(one)
    await fixture.carryOut('switchover-cluster', { clusterId, instanceId: one })
    await following()
  }
  const inputOf = async (n: number, cluster: string) => {
    const { upgrades } = await planOf(n)
    return upgrades.find(({ plan }) => plan.cluster === cluster)?.input
  }
  const engineOf = async (name: string) => (await fixture.memberOf(one, name)).engine
  const pidOf = async (id: string) => (await showInstance(fixture.db.pool, id))?.postmasterPid

  /** A ledger that begins anew. */
  async function writing() {
    await fixture.ask(await fixture.primaryOf(one), 'truncate ledger')
    return fixture.ledger(one)
  }

  test('where every instance runs on the installed engine there is nothing to do', async () => {
    await following()
    const { plan } = await planOf(1)
    expect(plan).toMatchObject({ blocker: null, clusters: [], current: ['alone', 'one', 'one-2'] })
  })

  test('the plan has standbys first, then a switchover to another host, then the former primary', async () => {
    const build = await fixture.installEngine(fixture.host(1), 'release-next')
    const { plan } = await settledPlanOf(1, ['alone', 'one'])
    expect(plan.build).toBe(build)
    expect(
      plan.clusters.map(({ steps }) => steps.map(({ action, member }) => `${action} ${member}`)),
    ).toEqual([
      ['restart-primary alone'],
      ['restart-standby one-2', 'switchover one-3', 'restart-former-primary one'],
    ])
    expect(plan.clusters[0]?.steps[0]?.text).toContain('Its clients are disconnected')
    // to read a plan changes nothing
    expect((await fixture.memberOf(one, 'one')).engine).toMatchObject({ current: false })
  })

  test('under writes nothing is lost, and the whole cluster follows', async () => {
    const writer = await writing()
    const input = await inputOf(1, 'one')
    const before = await pidOf((await fixture.memberOf(one, 'one-3')).instanceId)
    let operationId: string
    try {
      expect(await writer.writesAgain(10_000)).toBe(true)
      const operation = await fixture.carryOut('upgrade-members', input)
      operationId = operation.operationId
      expect(operation.result).toMatchObject({ moved: ['one-2', 'one'] })
      expect(await writer.writesAgain(10_000)).toBe(true)
    } finally {
      await writer.stop()
    }
    expect(writer.acknowledged.length).toBeGreaterThan(20)
    expect(await fixture.lost(one, writer.acknowledged)).toEqual([])
    expect((await fixture.primaryOf(one)).name).toBe('one-3')
    const next = { build: 'release-next', running: 'release-next', current: true }
    for (const name of ['one', 'one-2']) expect(await engineOf(name)).toEqual(next)
    await following()
    const started = fixture
      .taskLines(operationId)
      .filter(({ event, step }) => event === 'task.started' && /^(standbys|promote|former)/.test(step))
      .map(({ step }) => step)
    // the agents' logs are of one clock each: of host 1 both restarts, of host 2 the promotion
    expect(started).toEqual(['standbys.one-2', 'former.one', 'promote'])
    // the one that took over was not restarted
    expect(await pidOf((await fixture.memberOf(one, 'one-3')).instanceId)).toBe(before)
    expect(await fixture.logOf(operationId)).not.toContain('not reported yet')
  })

  test('an instance without a standby is restarted, and keeps its rows', async () => {
    const operation = await fixture.carryOut('upgrade-members', await inputOf(1, 'alone'))
    expect(operation.result).toMatchObject({ moved: ['alone'] })
    const primary = await fixture.primaryOf(alone)
    expect(primary.engine?.running).toBe('release-next')
    expect(await fixture.ask(primary, 'select count(*)::int as n from kept')).toEqual([{ n: 100 }])
    expect((await planOf(1)).plan).toMatchObject({ clusters: [], current: ['alone', 'one', 'one-2'] })
  })

  test('a plan that is no longer true is refused before anything is done', async () => {
    const { clusterId } = await fixture.clusterOf(one)
    await fixture.installEngine(fixture.host(1), 'release-third')
    await settledPlanOf(1, ['alone', 'one'])
    const input = await inputOf(1, 'one')
    expect(input).toMatchObject({ members: ['one', 'one-2'], primary: 'one-3', switchover: false })
    const pid = await pidOf((await fixture.memberOf(one, 'one')).instanceId)
    const { instanceId } = await fixture.memberOf(one, 'one-3')
    const other = await fixture.runToEnd('upgrade-members', {
      ...{ clusterId, instanceId, build: input?.build, members: ['one'], primary: 'one', switchover: false },
    })
    expect(other.fault).toMatchObject({ code: 'cluster.moved' })
    const later = await fixture.runToEnd('upgrade-members', { ...input, build: 'release-never' })
    expect(later.fault).toMatchObject({ code: 'engine.not_installed' })
    expect(later.fault?.message).toContain('member "one"')
    expect(await pidOf((await fixture.memberOf(one, 'one')).instanceId)).toBe(pid)
  })

  test('an engine that does not start: the member runs on its former one, and nothing is lost', async () => {
    const three = await fixture.memberOf(one, 'one-3')
    const directory = fixture.directoryOf(three)
    const former = three.engine?.running
    await fixture.installEngine(fixture.host(2), 'release-broken', (prefix) => refuseFor(prefix, directory))
    await settledPlanOf(2, ['one'])
    const input = await inputOf(2, 'one')
    expect(input).toMatchObject({ members: ['one-3'], primary: 'one-3', switchover: true })
    const writer = await writing()
    try {
      expect(await writer.writesAgain(10_000)).toBe(true)
      const operation = await fixture.runToEnd('upgrade-members', input)
      expect(operation.fault).toMatchObject({ code: 'engine.not_started' })
      expect(operation.fault?.message).toContain('member "one-3"')
      expect(await writer.writesAgain(10_000)).toBe(true)
    } finally {
      await writer.stop()
    }
    expect(writer.acknowledged.length).toBeGreaterThan(20)
    expect(await fixture.lost(one, writer.acknowledged)).toEqual([])
    await following()
    expect(await engineOf('one-3')).toMatchObject({ running: former, current: false })
    expect((await fixture.memberOf(one, 'one-3')).role).toBe('standby')
    // whichever was further then has taken over
    if ((await fixture.primaryOf(one)).name !== 'one') await switchToOne()
  })

  const asked = (n: number, build: EngineBuild, more: { switchBack?: boolean; except?: string[] } = {}) =>
    inTransaction(fixture.db.as.web.pool, (tx) =>
      askHostUpgrade(tx, { switchBack: false, ...more, hostId: fixture.host(n).hostId, build, actor }),
    )
  const last = async (n: number) =>
    (await lastHostUpgrade(fixture.db.pool, fixture.host(n).hostId)) as HostUpgrade
  const ended = (n: number) =>
    waitUntil(
      'the upgrade of the host ended',
      async () => {
        const upgrade = await last(n)
        return upgrade.endedAt === null ? null : upgrade
      },
      120_000,
    )
  const orderOf = ({ ordered }: HostUpgrade) =>
    ordered.map(({ cluster, back, state }) => `${cluster}${back ? ' back' : ''}: ${state}`)

  test('asked of the host, clusters come one after another, and the primary comes back; killed meanwhile, it goes on', {
    timeout: 180_000,
  }, async () => {
    const build = await fixture.installEngine(fixture.host(1), 'release-fourth')
    await settledPlanOf(1, ['alone', 'one'])
    expect((await fixture.primaryOf(one)).name).toBe('one')
    const writer = await writing()
    try {
      expect(await writer.writesAgain(10_000)).toBe(true)
      const { upgradeId } = (await asked(1, build, { switchBack: true })) ?? {}
      // asked again it is the same one; for anything else it has to end first
      expect(await asked(1, build, { switchBack: true })).toEqual({ upgradeId, created: false })
      expect(await asked(1, build)).toBeUndefined()
      for (const count of [1, 2, 3]) {
        const { ordered } = await waitUntil(
          `${count} operations are ordered`,
          async () => {
            const upgrade = await last(1)
            return upgrade.ordered.length >= count ? upgrade : null
          },
          90_000,
          5,
        )
        // the ones before have ended
        for (const { operationId } of ordered.slice(0, count - 1))
          expect((await showOperation(fixture.db.pool, operationId))?.state).toBe('succeeded')
        await controller.end('SIGKILL')
        controller = fixture.startProcess()
      }
      const upgrade = await ended(1)
      expect(upgrade).toMatchObject({ fault: null, left: [] })
      expect(orderOf(upgrade)).toEqual(['alone: succeeded', 'one: succeeded', 'one back: succeeded'])
      expect(await writer.writesAgain(10_000)).toBe(true)
    } finally {
      await writer.stop()
    }
    expect(writer.acknowledged.length).toBeGreaterThan(20)
    expect(await fixture.lost(one, writer.acknowledged)).toEqual([])
    expect((await fixture.primaryOf(one)).name).toBe('one')
    await following()
    expect((await planOf(1)).plan).toMatchObject({ clusters: [], current: ['alone', 'one', 'one-2'] })
    const { rows } = await fixture.db.pool.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM operation WHERE "idempotencyKey" LIKE 'host-upgrade:%'`,
    )
    expect(rows).toEqual([{ n: 3 }])
  })

  test('one that could not be tried is left, and holds up nobody; one that is left out is not tried', {
    timeout: 120_000,
  }, async () => {
    await fixture.carryOut('change-settings', {
      instanceId: alone,
      changes: [{ name: 'max_connections', value: '90' }],
    })
    const pid = await pidOf(alone)
    const build = await fixture.installEngine(fixture.host(1), 'release-fifth')
    await settledPlanOf(1, ['alone', 'one'])
    await asked(1, build, { except: ['one'] })
    const nobody = await ended(1)
    expect(nobody).toMatchObject({ fault: null, ordered: [{ cluster: 'alone', state: 'failed' }] })
    expect(nobody.left?.map(({ member }) => member)).toEqual(['alone', 'one', 'one-2'])
    await asked(1, build)
    const upgrade = await ended(1)
    expect(orderOf(upgrade)).toEqual(['alone: failed', 'one: succeeded'])
    expect(upgrade).toMatchObject({
      fault: null,
      left: [{ member: 'alone', why: expect.stringContaining('wait for a restart') }],
    })
    expect(await pidOf(alone)).toBe(pid)
    await fixture.carryOut('restart-instance', { instanceId: alone, mode: 'fast' })
    await switchToOne()
  })

  test('it ends at the first whose instance does not start: the others are left as they are', {
    timeout: 120_000,
  }, async () => {
    const directory = fixture.directoryOf(await fixture.primaryOf(alone))
    const pid = await pidOf(one)
    const build = await fixture.installEngine(fixture.host(1), 'release-broken-too', (prefix) =>
      refuseFor(prefix, directory),
    )
    await settledPlanOf(1, ['alone', 'one'])
    await asked(1, build)
    const upgrade = await ended(1)
    expect(upgrade.fault).toMatchObject({
      code: 'host.upgrade_stopped',
      message: expect.stringContaining('"alone"'),
    })
    expect(orderOf(upgrade)).toEqual(['alone: failed'])
    expect(await pidOf(one)).toBe(pid)
    const primary = await fixture.primaryOf(alone)
    expect(primary).toMatchObject({ state: 'running', engine: { running: 'release-fourth', current: false } })
    expect(await fixture.ask(primary, 'select count(*)::int as n from kept')).toEqual([{ n: 100 }])
  })

  test('cancelled, it orders nothing more', async () => {
    const { build } = await last(1)
    await controller.end('SIGTERM')
    await asked(1, build)
    await inTransaction(fixture.db.as.web.pool, (tx) => cancelHostUpgrade(tx, fixture.host(1).hostId))
    controller = fixture.startProcess()
    const upgrade = await ended(1)
    expect(upgrade).toMatchObject({ ordered: [], fault: { code: 'host.upgrade_cancelled' } })
  })
})
