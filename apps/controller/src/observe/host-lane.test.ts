// A controller that stood still, or lost its lease meanwhile, concludes nothing from what it did not hear.
import { type LeaseHold, listAgents, listIncidents, takeLease } from '@floe/db'
import { waitUntil } from '@floe/testkit'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { Agents } from '../agents'
import { DatabaseWatch } from '../loop'
import { Standstills } from '../standstills'
import { controllersFixture, keptLog } from '../testing/controllers-fixture'
import { HostLane } from './host-lane'

// the lease is looked at by what the lane writes, and by nothing else
const times = { leaseMs: 60_000, renewMs: 60_000 }
let fixture: Awaited<ReturnType<typeof controllersFixture>>
let lane: HostLane | undefined
let agents: Agents
let standstills: Standstills
beforeEach(async () => {
  fixture = await controllersFixture(inject('engineConnectionString'))
  agents = new Agents({ authority: fixture.authority.certificate, identity: () => fixture.identity })
})
afterEach(async () => {
  await lane?.stop()
  standstills.stop()
  agents.close()
  await fixture.remove()
})

/** A lane that hears its host, with a clock that goes on besides by what `ahead` says. */
async function listening() {
  const ahead = { ms: 0 }
  const log = keptLog()
  standstills = new Standstills(log, () => ({
    monotonic: performance.now() + ahead.ms,
    wall: Date.now() + ahead.ms,
  }))
  standstills.start()
  const all = await listAgents(fixture.db.pool)
  agents.place(all)
  const host = all[0]
  if (!host) throw new Error('no host')
  const hold = await takeLease(fixture.db.pool, {
    name: `observe:${host.hostId}`,
    owner: 'this one',
    leaseMs: times.leaseMs,
  })
  const signing = { authority: fixture.authority.signing }
  const parts = { db: fixture.db, agents, log, database: new DatabaseWatch(log), times, signing, standstills }
  lane = new HostLane(host, hold as LeaseHold, parts)
  const has = (event: string, n = 1) =>
    waitUntil(event, async () => log.lines.filter((l) => l.event === event).length >= n, 20_000)
  await waitUntil('a report is written', async () => {
    const { rows } = await fixture.db.pool.query('SELECT 1 FROM host WHERE "observedAt" IS NOT NULL')
    return rows.length > 0
  })
  /** Time goes by, in steps that are no standstill. */
  const pass = (ms: number) => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      ahead.ms += 1_000
      standstills.now()
    }
  }
  return { ahead, has, lane, pass }
}
const openKeys = async () => (await listIncidents(fixture.db.pool)).map((i) => i.key)
const faultWritten = () =>
  waitUntil('the lane has tried and told', async () => {
    const { rows } = await fixture.db.pool.query('SELECT fault FROM host WHERE fault IS NOT NULL')
    return rows.length > 0
  })

test('silence over a standstill of the controller is none of the host’s; silence after it is', async () => {
  const { ahead, has, pass } = await listening()
  await fixture.host.close()
  // all at once, as it is for a process that was stopped
  ahead.ms += 40_000
  await has('host.silent')
  await faultWritten()
  expect(await openKeys()).toEqual([])
  // and now it listens, and hears nothing
  pass(31_000)
  await waitUntil('the incident is open', async () =>
    (await openKeys()).includes(`host-offline:${fixture.host.hostId}`),
  )
})

test('a lane that lost its lease writes nothing of a host that another one hears', async () => {
  const { has, lane, pass } = await listening()
  await fixture.db.pool.query(`UPDATE lease SET "expiresAt" = clock_timestamp() - interval '1 ms'`)
  await takeLease(fixture.db.pool, {
    name: `observe:${fixture.host.hostId}`,
    owner: 'another',
    leaseMs: 600_000,
  })
  pass(31_000)
  await fixture.host.close()
  await has('host.lease_lost')
  await lane.done
  expect(await openKeys()).toEqual([])
  const { rows } = await fixture.db.pool.query('SELECT fault FROM host')
  expect(rows).toEqual([{ fault: null }])
})
