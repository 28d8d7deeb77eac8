import { insertTestInstance } from '@floe/db/testing'
import { type ClusterId, fault, InstanceId, type Setting } from '@floe/domain'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import type { Agents } from '../../agents'
import { faultOf } from '../../faults'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

const setting = (name: string, value: string, more: Partial<Setting> = {}): Setting => ({
  name,
  value,
  shown: value,
  unit: null,
  type: 'integer',
  context: 'postmaster',
  category: 'Connections',
  description: 'Sets something.',
  detail: null,
  min: '1',
  max: '100',
  choices: null,
  bootValue: '100',
  resetValue: value,
  source: 'default',
  sourceFile: null,
  sourceLine: null,
  pendingRestart: false,
  managedValue: null,
  fileError: null,
  ...more,
})

/** A primary with a standby, whose agents answer these settings; one that is left out does not answer. */
async function pairThatAnswers(of: { primary?: Setting[]; standby?: Setting[] }) {
  const primary = await insertTestInstance(it.database)
  const standby = await insertTestInstance(it.database, { hostId: primary.hostId })
  const { rows } = await it.database.pool.query(
    `UPDATE instance s SET "clusterId" = p."clusterId", "memberRole" = 'standby' FROM instance p
      WHERE s.id = $1 AND p.id = $2 RETURNING p."clusterId"`,
    [standby.instanceId, primary.instanceId],
  )
  const answers = new Map([
    [primary.instanceId, of.primary],
    [standby.instanceId, of.standby],
  ])
  const agents = {
    async probe(instanceId: string) {
      const settings = answers.get(instanceId)
      if (!settings) throw fault('agent.unreachable', 'the agent does not answer')
      return { settings, observedAt: 1 }
    },
  } as unknown as Agents
  const caller = await it.callerOf((await it.signedIn('operator')).headers, { agents })
  return {
    caller,
    primary,
    standby,
    instanceId: InstanceId.parse(primary.instanceId),
    clusterId: rows[0].clusterId as ClusterId,
  }
}

test('an instance is answered as a cluster of one, and members stand beside each other', async () => {
  const { caller, instanceId, clusterId, primary, standby } = await pairThatAnswers({
    primary: [
      setting('max_connections', '100', { pendingRestart: true, managedValue: '200' }),
      setting('shared_buffers', '16384', { shown: '128MB', unit: '8kB' }),
      setting('port', '5500'),
    ],
    standby: [
      setting('max_connections', '50'),
      setting('shared_buffers', '16384', { shown: '128MB', unit: '8kB' }),
      setting('port', '5501'),
    ],
  })
  const alone = await caller.setting.list({ scope: { instanceId } })
  expect(alone.members.map((m) => m.name)).toEqual([primary.name])
  expect(alone.settings.map((s) => [s.name, s.values.map((v) => v?.shown), s.differs])).toEqual([
    ['max_connections', ['100'], false],
    ['port', ['5500'], false],
    ['shared_buffers', ['128MB'], false],
  ])

  const together = await caller.setting.list({ scope: { clusterId } })
  expect(together.members.map((m) => [m.name, m.fault])).toEqual([
    [primary.name, null],
    [standby.name, null],
  ])
  expect(together.settings).toMatchObject([
    {
      name: 'max_connections',
      impact: 'restart',
      ordered: true,
      notable: true,
      differs: true,
      tooSmallOn: [standby.name],
      values: [
        { shown: '100', pending: '200', managedValue: '200' },
        { shown: '50', pending: null },
      ],
    },
    // each has its own by the nature of it
    { name: 'port', differs: true, notable: false },
    { name: 'shared_buffers', differs: false, notable: false },
  ])
  const { settings } = await caller.setting.list({ scope: { clusterId }, search: 'buffers' })
  expect(settings.map((s) => s.name)).toEqual(['shared_buffers'])
})

test('a member that does not answer says why beside the others; where none does it is thrown', async () => {
  const half = await pairThatAnswers({ primary: [setting('max_connections', '100')] })
  const { members, settings } = await half.caller.setting.list({ scope: { clusterId: half.clusterId } })
  expect(members.map((m) => m.fault?.code ?? null)).toEqual([null, 'agent.unreachable'])
  expect(settings[0]).toMatchObject({ values: [{ shown: '100' }, null], differs: false, tooSmallOn: [] })

  const none = await pairThatAnswers({})
  for (const scope of [{ instanceId: none.instanceId }, { clusterId: none.clusterId }])
    await expect(none.caller.setting.list({ scope })).rejects.toSatisfy(
      (error) => faultOf(error as never).code === 'agent.unreachable',
    )
})

test('a scope names one instance or one cluster, never both', async () => {
  const { caller, instanceId, clusterId } = await pairThatAnswers({})
  await expect(caller.setting.history({ scope: { instanceId, clusterId } as never })).rejects.toMatchObject({
    code: 'BAD_REQUEST',
  })
})
