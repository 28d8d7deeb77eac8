import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inTransaction, listIncidents, revokeHost, showInstance, showOperation } from '@floe/db'
import { type ClusterMember, replicationLoginOf, slotNameOf } from '@floe/domain'
import { patienceWith } from '@floe/operations'
import { cancelOperation, retryOperation } from '@floe/operations/submit'
import { type ThrowawayHost, ThrowawayNetwork, waitUntil } from '@floe/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { actor } from './testing/controllers-fixture'
import { type HostsFixture, hostsFixture } from './testing/hosts-fixture'

const missing = ThrowawayNetwork.missing()
vi.setConfig({ testTimeout: 120_000 })

/** What goes wrong on a real host in the middle of an operation: it is said clearly, and nothing half-made is left. */
describe.skipIf(missing !== null)(`nothing half left${missing ? ` (${missing})` : ''}`, () => {
  let fixture: HostsFixture
  let two: ThrowawayHost
  let three: ThrowawayHost
  let one: string
  const mounted: string[] = []
  const foreign: ChildProcess[] = []

  beforeAll(async () => {
    fixture = await hostsFixture({ hosts: 3, instances: 4 })
    two = fixture.host(2)
    three = fixture.host(3)
    // a host that is away is away for good here
    await fixture.start({
      patience: patienceWith({
        questionMs: 1_000,
        withoutHostMs: 1_000,
        cancelGiveUpMs: 4_000,
        undoGiveUpMs: 2_000,
      }),
    })
    one = await fixture.createInstance('one')
    // big enough to be in the middle of its copy for a while
    await fixture.ask(
      await fixture.primaryOf(one),
      `create table bulk as select n, repeat('x', 1000) as filler from generate_series(1, 80000) as n`,
    )
  }, 180_000)
  afterEach(async () => {
    for (const child of foreign.splice(0)) {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    }
  })
  afterAll(async () => {
    for (const path of mounted) execFileSync('umount', ['-l', path])
    await fixture?.remove()
  }, 60_000)

  const cluster = () => fixture.clusterOf(one)
  const begin = async (host: ThrowawayHost, name = 'one-2') => {
    const instanceId = randomUUID()
    const { clusterId } = await cluster()
    const operationId = await fixture.submit('create-standby', { instanceId, name, clusterId }, host.hostId)
    return { instanceId, operationId }
  }
  /** Resolves when bytes of the copy lie on its host. */
  const copying = (host: ThrowawayHost, instanceId: string) =>
    waitUntil(
      'the copy has begun',
      () =>
        readdirSync(join(host.home.installation.instancesDirectory, instanceId)).some(
          (entry) =>
            entry.startsWith('pgdata.unfinished-') &&
            existsSync(join(host.home.installation.instancesDirectory, instanceId, entry, 'base')),
        ),
      30_000,
      2,
    )

  /** The operation failed with a fault in PostgreSQL's style. */
  async function expectFault(operationId: string, code: string, boundMs = 60_000) {
    const { state, fault } = await fixture.ended(operationId, boundMs)
    expect({ state, code: fault?.code }).toEqual({ state: 'failed', code })
    expect(fault?.message).toMatch(/^[a-z"].*[^.]$/s)
    expect(fault?.detail).toMatch(/^[A-Z0-9"].*\.$/s)
    expect(fault?.hint).toMatch(/^[A-Z].*\.$/s)
    return fault
  }

  /** Only these members are anywhere: on hosts, in the primary, in the control database. */
  async function expectOnly(members: string[], besides: string[] = []) {
    const seen = await cluster()
    expect(seen.members.map((m) => m.name)).toEqual(members.map((m) => m.split('/')[1]))
    const traces = await fixture.traces(one)
    const placed = (all: string[]) => all.filter((place) => !besides.some((b) => place.startsWith(b)))
    expect({ d: placed(traces.directories), r: placed(traces.registered) }).toEqual({
      d: members,
      r: members,
    })
    const standbys = seen.members.filter((m) => m.memberRole === 'standby')
    expect(traces.slots).toEqual(standbys.map(({ name }) => `one: ${slotNameOf(name)}`))
    expect(traces.roles).toEqual(standbys.map(replicationLoginOf).sort())
    for (const role of traces.roles) expect(role).toMatch(/^floe_standby_\w+_[0-9a-f]{16}$/)
  }
  /** Makes a standby of this name and takes it away again: nothing is in its way. */
  async function expectNameIsFree(host: ThrowawayHost, name = 'one-2', besides: string[] = []) {
    const { instanceId, operationId } = await begin(host, name)
    await fixture.succeeded(operationId)
    await fixture.carryOut('remove-standby', { instanceId, confirmName: name })
    await expectOnly(['h1/one'], besides)
  }

  /** A process that is none of ours listens on these ports of a host. */
  async function occupy(host: ThrowawayHost, ports: number[]) {
    const script = `let left = ${ports.length}
      for (const port of ${JSON.stringify(ports)})
        require('node:net').createServer().listen(port, '0.0.0.0', () => --left === 0 && console.log('ready'))`
    const [file = '', ...args] = [...host.network.command, process.execPath, '-e', script]
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    foreign.push(child)
    await once(child.stdout, 'data')
    return async () => {
      foreign.splice(foreign.indexOf(child), 1)
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    }
  }

  test('a disk that becomes full in the middle of a copy', async () => {
    const directory = two.home.installation.instancesDirectory
    // mounts that are made later do not reach a host that runs
    await two.agent.end('SIGTERM')
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=480m,mode=755', 'floe-test', directory])
    mounted.push(directory)
    await two.agent.start()
    const { instanceId, operationId } = await begin(two)
    await copying(two, instanceId)
    const filler = join(directory, 'filler')
    // stopped for as long as it takes to leave no room
    fixture.net.network.partition(two.network, [fixture.host(1).network])
    spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=1M'])
    fixture.net.network.heal(two.network)
    try {
      const fault = await expectFault(operationId, 'standby.disk_full')
      expect(fault?.detail).toMatch(/ had been copied/)
    } finally {
      rmSync(filler)
    }
    await expectOnly(['h1/one'])
    expect((await showInstance(fixture.db.pool, instanceId))?.deletedAt).not.toBeNull()
    // taken up again it begins anew, with the row it had
    const retried = await retryOperation(fixture.db.as.web, { operationId, actor })
    await fixture.succeeded(retried.operationId)
    await expectOnly(['h1/one', 'h2/one-2'])
    await fixture.carryOut('remove-standby', { instanceId, confirmName: 'one-2' })
    await expectOnly(['h1/one'])
  })

  test('a copy that does not fit is refused before the first byte', async () => {
    const directory = two.home.installation.instancesDirectory
    const { bavail, bsize } = statfsSync(directory)
    const filler = join(directory, 'filler')
    execFileSync('fallocate', ['-l', String(bavail * bsize - 100 * 1024 * 1024), filler])
    const { operationId } = await begin(two)
    const fault = await expectFault(operationId, 'standby.disk_too_small')
    expect(fault?.detail).toMatch(/ are free in /)
    rmSync(filler)
    await expectOnly(['h1/one'])
  })

  test('a host whose engine is of another major version', async () => {
    const real = three.home.installation.enginePrefix
    const prefix = join(dirname(three.home.installation.instancesDirectory), 'other-engine')
    mkdirSync(join(prefix, 'bin'), { recursive: true })
    for (const entry of readdirSync(real))
      if (entry !== 'bin') symlinkSync(join(real, entry), join(prefix, entry))
    for (const entry of readdirSync(join(real, 'bin')))
      if (entry !== 'postgres') symlinkSync(join(real, 'bin', entry), join(prefix, 'bin', entry))
    writeFileSync(
      join(prefix, 'bin/postgres'),
      `#!/bin/sh\n[ "$1" = --version ] && echo "postgres (PostgreSQL) 17.9" && exit\nexec ${real}/bin/postgres "$@"\n`,
      { mode: 0o755 },
    )
    const configure = async (enginePrefix: string) => {
      await three.agent.end('SIGTERM')
      writeFileSync(
        join(three.home.home, 'config.json'),
        JSON.stringify({ ...three.home.installation, enginePrefix }),
      )
      await three.agent.start()
    }
    await configure(prefix)
    try {
      const { operationId } = await begin(three)
      const fault = await expectFault(operationId, 'standby.version_differs')
      expect(fault?.detail).toMatch(/^The primary runs PostgreSQL 18\.\d+, this host has 17\.9\.$/)
      await expectOnly(['h1/one'])
    } finally {
      await configure(real)
    }
    await expectNameIsFree(three)
  })

  test('a host whose ports are all taken by others', async () => {
    const { from, to } = three.home.installation.instancePorts
    const release = await occupy(
      three,
      Array.from({ length: to - from + 1 }, (_, n) => from + n),
    )
    const { operationId } = await begin(three)
    const fault = await expectFault(operationId, 'host.no_free_port')
    expect(fault?.message).toBe(`no free port between ${from} and ${to}`)
    await expectOnly(['h1/one'])
    await release()
    await expectNameIsFree(three)
  })

  test('a port that a foreign process takes while the copy is made: the copy is kept, and a retry starts it', async () => {
    const { instanceId, operationId } = await begin(three)
    await copying(three, instanceId)
    const steps = (await showOperation(fixture.db.pool, operationId))?.steps ?? []
    const prepared = steps.find((s) => s.name === 'prepare')?.result as { port: number } | undefined
    const port = prepared?.port as number
    const release = await occupy(three, [port])
    const fault = await expectFault(operationId, 'instance.port_in_use')
    expect(fault?.message).toBe(`port ${port} is in use`)
    await expectOnly(['h1/one', 'h3/one-2'])
    await release()
    const retried = await retryOperation(fixture.db.as.web, { operationId, actor })
    const operation = await fixture.succeeded(retried.operationId)
    expect(operation.steps.find((s) => s.name === 'clone')?.result).toMatchObject({ method: 'kept' })
    await fixture.carryOut('remove-standby', { instanceId, confirmName: 'one-2' })
    await expectOnly(['h1/one'])
  })

  test('an instance whose port a foreign process took while it was stopped', async () => {
    const { instanceId, operationId } = await begin(three)
    await fixture.succeeded(operationId)
    const port = (await showInstance(fixture.db.pool, instanceId))?.port as number
    await fixture.carryOut('stop-instance', { instanceId })
    const release = await occupy(three, [port])
    await expectFault(await fixture.submit('start-instance', { instanceId }), 'instance.port_in_use')
    // it never ran, so it has not crashed
    expect((await showInstance(fixture.db.pool, instanceId))?.state).toMatch(/^(starting|stopped)$/)
    await waitUntil(
      'it is seen stopped',
      async () => (await showInstance(fixture.db.pool, instanceId))?.state === 'stopped',
    )
    await release()
    await fixture.carryOut('start-instance', { instanceId })
    await fixture.carryOut('remove-standby', { instanceId, confirmName: 'one-2' })
    await expectOnly(['h1/one'])
  })

  test('a host that is gone for a while in the middle of a copy: the operation waits, and ends well', async () => {
    const { instanceId, operationId } = await begin(three)
    await copying(three, instanceId)
    fixture.net.network.partition(three.network)
    await waitUntil(
      'it says whom it waits for',
      async () =>
        (await showOperation(fixture.db.pool, operationId))?.message === 'host "h3" does not answer',
      20_000,
    )
    fixture.net.network.heal(three.network)
    await fixture.succeeded(operationId)
    await expectOnly(['h1/one', 'h3/one-2'])
    await fixture.carryOut('remove-standby', { instanceId, confirmName: 'one-2' })
    await expectOnly(['h1/one'])
  })

  test('a host that stays away in the middle of a copy: a cancel frees the primary and says what may be left', async () => {
    const { instanceId, operationId } = await begin(three)
    await copying(three, instanceId)
    fixture.net.network.partition(three.network)
    await waitUntil(
      'it says whom it waits for',
      async () =>
        (await showOperation(fixture.db.pool, operationId))?.message === 'host "h3" does not answer',
      20_000,
    )
    await cancelOperation(fixture.db.as.web, { operationId, actor })
    const { state, steps } = await fixture.ended(operationId, 110_000)
    expect(state).toBe('cancelled')
    const detail = steps.find((s) => s.name === 'clone')?.fault?.detail
    expect(detail).toContain('Could not be undone: forget-standby on host "h3"')
    const onPrimary = await fixture.ask<{ slots: number; roles: number }>(
      await fixture.primaryOf(one),
      `select (select count(*)::int from pg_replication_slots) as slots,
              (select count(*)::int from pg_roles where rolname like 'floe\\_standby%') as roles`,
    )
    expect(onPrimary).toEqual([{ slots: 0, roles: 0 }])
    // what its host may hold is not forgotten: it is a member until it is removed there
    fixture.net.network.heal(three.network)
    await waitUntil(
      'the host is seen',
      async () => (await cluster()).members.every((m: ClusterMember) => m.hostState === 'online'),
      30_000,
    )
    await fixture.carryOut('remove-standby', { instanceId, confirmName: 'one-2' })
    await expectOnly(['h1/one'])
    await expectNameIsFree(three)
  }, 240_000)

  test('a standby is removed without its host: the slot is free, and it is fenced when the host comes back', async () => {
    const { instanceId, operationId } = await begin(three)
    await fixture.succeeded(operationId)
    fixture.net.network.partition(three.network)
    const remove = { instanceId, confirmName: 'one-2' }
    await expect(
      fixture.submit('remove-standby', { ...remove, unreachableHost: 'h2' }),
    ).rejects.toMatchObject({
      fault: { code: 'host.name_mismatch' },
    })
    const removed = await fixture.carryOut('remove-standby', { ...remove, unreachableHost: 'h3' })
    const directory = join(three.home.installation.instancesDirectory, instanceId)
    expect(removed.result).toMatchObject({ removed: false, left: { host: 'h3', directory } })
    await expectOnly(['h1/one'], ['h3/'])
    // the name is free at once
    const again = await begin(two)
    await fixture.succeeded(again.operationId)
    fixture.net.network.heal(three.network)
    const incident = await waitUntil(
      'an incident tells of it',
      async () => (await listIncidents(fixture.db.pool)).find((i) => i.key === `instance-left:${instanceId}`),
      60_000,
    )
    expect(incident.title).toBe('host "h3" still has instance "one-2", which was removed')
    expect(incident.detail).toContain(directory)
    await waitUntil('it is fenced', async () => {
      const { rows } = await fixture.db.pool.query(
        `SELECT FROM operation WHERE "instanceId" = $1 AND kind = 'fence-instance' AND state = 'succeeded'`,
        [instanceId],
      )
      return rows.length === 1
    })
    expect(existsSync(join(directory, 'pgdata/postmaster.pid'))).toBe(false)
    await expect(fixture.submit('start-instance', { instanceId })).rejects.toThrow('does not exist')
    await fixture.carryOut('remove-standby', { instanceId: again.instanceId, confirmName: 'one-2' })
    await expectOnly(['h1/one'], ['h3/'])
  })

  test('a host that is revoked in the middle of a copy: the primary keeps nothing, the name is free', async () => {
    const { instanceId, operationId } = await begin(three, 'one-3')
    await copying(three, instanceId)
    await inTransaction(fixture.db.as.web.pool, (tx) => revokeHost(tx, three.hostId, 'Tester'))
    const fault = await expectFault(operationId, 'host.revoked', 30_000)
    expect(fault?.detail).toContain('forget-standby on host "h3"')
    // what lies on a host that is not believed any more is nothing this console can say anything about
    await expectOnly(['h1/one'], ['h3/'])
    await expectNameIsFree(two, 'one-3', ['h3/'])
  })
})
