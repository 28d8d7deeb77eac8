import { insertTestInstance } from '@floe/db/testing'
import { InstanceId, profileSettings } from '@floe/domain'
import { TRPCError } from '@trpc/server'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { faultOf } from '../../faults'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

const facts = (memoryBytes: number, cpus: number) => ({
  ...{ hostName: 'h', operatingSystem: 'Linux', kernel: '6', architecture: 'x86_64', cpus, memoryBytes },
  ...{ memoryAvailableBytes: 1, loadAverage1: 0, uptimeSeconds: 1, supervision: 'detached', disks: [] },
  instancePorts: { from: 1, to: 2, used: 0 },
})
const sized = (hostId: string, memoryBytes: number, cpus: number) =>
  it.database.pool.query(`UPDATE host SET facts = $2, "observedAt" = now() WHERE id = $1`, [
    hostId,
    JSON.stringify(facts(memoryBytes, cpus)),
  ])
const GB = 1024 ** 3

test('a profile is computed from the smallest host of the members and the share of it; of an unknown host it is refused', async () => {
  const viewer = await it.callerOf((await it.signedIn('viewer')).headers)
  const primary = await insertTestInstance(it.database)
  const scope = { instanceId: InstanceId.parse(primary.instanceId) }
  const profile = 'oltp-nvme' as const
  const unknown = await viewer.setting.profile({ scope, profile }).catch((error: unknown) => error)
  expect(unknown).toBeInstanceOf(TRPCError)
  expect(faultOf(unknown as TRPCError).code).toBe('host.facts_unknown')

  await sized(primary.hostId, 64 * GB, 16)
  expect(await viewer.setting.profile({ scope, profile })).toMatchObject({
    share: 1,
    host: { memoryBytes: 64 * GB, cpus: 16, instances: 1 },
    lines: profileSettings(profile, { memoryBytes: 64 * GB, cpus: 16 }, 1),
  })
  // another instance on the host halves what is proposed, a share that is asked for counts
  const standby = await insertTestInstance(it.database, { hostId: primary.hostId })
  expect((await viewer.setting.profile({ scope, profile })).share).toBe(0.5)
  expect((await viewer.setting.profile({ scope, profile, share: 0.25 })).lines).toEqual(
    profileSettings(profile, { memoryBytes: 64 * GB, cpus: 16 }, 0.25),
  )
  await expect(viewer.setting.profile({ scope, profile, share: 1.1 })).rejects.toThrow()
  // what it may not have is not proposed
  await it.database.pool.query('UPDATE instance SET limits = $2 WHERE id = $1', [
    primary.instanceId,
    JSON.stringify({ memoryMax: 4 * GB }),
  ])
  const limited = await viewer.setting.profile({ scope, profile })
  expect(limited.ceiling).toEqual({ memoryBytes: 4 * GB, cpus: null })
  expect(limited.lines.find((line) => line.name === 'shared_buffers')?.value).toBe('1024MB')

  const small = await insertTestInstance(it.database)
  await sized(small.hostId, 8 * GB, 4)
  const { rows } = await it.database.pool.query(
    `UPDATE instance s SET "clusterId" = p."clusterId", "memberRole" = 'standby', "hostId" = $3 FROM instance p
      WHERE s.id = $1 AND p.id = $2 RETURNING p."clusterId"`,
    [standby.instanceId, primary.instanceId, small.hostId],
  )
  const ofCluster = { clusterId: rows[0].clusterId }
  expect((await viewer.setting.profile({ scope: ofCluster, profile, share: 1 })).host.memoryBytes).toBe(
    8 * GB,
  )
})
