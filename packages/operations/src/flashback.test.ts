import type { InstanceView } from '@floe/db'
import { type ClusterObserved, InstanceId, OperationId, type OperationKind } from '@floe/domain'
import { describe, expect, test } from 'vitest'
import { operationDefinition } from './definitions'
import { mergeFlashback } from './kinds/merge-flashback'
import { PATIENCE } from './patience'
import type { Guarded, StepContext } from './step'

const instanceId = InstanceId.parse('0d8f2a9e-6c51-4a30-9f4e-1d2c3b4a5f60')
const of = {
  instanceId,
  database: 'shop',
  table: 16_400,
  result: 16_500,
  tableName: 'public.account',
  resultName: 'public.polar_flashback_16400',
  at: '2026-11-23T23:40:00Z',
  lsn: '0/1',
  insertMissing: true,
  restoreChanged: false,
  deleteAdded: false,
  dryRun: false,
}
const asked = (memberRole: 'primary' | 'standby', input: object = of) =>
  ({
    input,
    instance: { name: 'demo', cluster: { memberRole } } as InstanceView,
    readCluster: async () => undefined,
  }) as unknown as Guarded

const reading: OperationKind[] = ['preview-flashback', 'compare-flashback', 'export-flashback']
const changing: OperationKind[] = [
  'prepare-flashback',
  'flashback-table',
  'flashback-dropped-table',
  'merge-flashback',
  'swap-flashback',
  'drop-flashback',
]

test('rows of a merge are selected, or match a condition, and not both', () => {
  const selected = { comparison: instanceId, selected: [1] }
  const refused = (more: object) => () =>
    mergeFlashback.guard?.(asked('primary', { ...of, ...more }) as never)
  expect(refused({ ...selected, condition: 'true' })).toThrow('either selected or those that match')
  expect(refused({ condition: 'true' })).not.toThrow()
  expect(refused({ comparison: instanceId })).toThrow('selected rows are those of a comparison')
  expect(refused({ selected: [1] })).toThrow('selected rows are those of a comparison')
})

test('a merge that would do nothing is refused', () => {
  const nothing = { ...of, insertMissing: false, restoreChanged: false, deleteAdded: false }
  expect(() => mergeFlashback.guard?.(asked('primary', nothing) as never)).toThrow(
    'a merge has to insert, restore or delete rows',
  )
})

test('a table is given back to before what happened to it', () => {
  const { plan } = operationDefinition('flashback-dropped-table')
  const titleOf = (more: object) => plan({ ...of, ...more } as never, { state: 'running' })[0]?.title
  expect(titleOf({})).toBe('Flash back public.account to before it was dropped')
  expect(titleOf({ lost: 'truncated' })).toBe('Flash back public.account to before it was truncated')
})

describe.each([...reading, ...changing])('%s', (kind) => {
  const definition = operationDefinition(kind)
  const [step] = definition.plan(of as never, { state: 'running' })

  test('is one step, which names what it is about', () => {
    expect(definition.plan(of as never, { state: 'running' })).toHaveLength(1)
    expect(step?.title).toMatch(/public\.|"shop"/)
  })

  test(`is ordered for ${reading.includes(kind) ? 'any member' : 'a primary only'}`, async () => {
    const onStandby = async () => definition.guard?.(asked('standby'))
    if (reading.includes(kind)) await expect(onStandby()).resolves.toBeUndefined()
    else await expect(onStandby()).rejects.toThrow('instance "demo" is a standby')
    await definition.guard?.(asked('primary'))
  })

  test('is carried out by the member that was named, and given up with a host that is silent', async () => {
    const started: unknown[] = []
    const run = (silentMs: number, answers: boolean) =>
      definition.steps[step?.name as never]?.run({
        operationId: 'o',
        input: of,
        step: { name: step?.name, attempt: 1, taskLogSeq: 0, startedAt: new Date(0) },
        cancelAskedAt: null,
        now: new Date(100_000),
        atWorkSince: new Date(0),
        patience: PATIENCE,
        results: {},
        readCluster: async () =>
          ({
            name: 'demo',
            members: [{ instanceId, name: 'demo', hostId: 'h', hostName: 'db1', ageMs: silentMs }],
          }) as unknown as ClusterObserved,
        agentOf: (hostId: string) => ({
          checkTask: answers
            ? async () => ({ state: 'not-started', log: [] })
            : () => Promise.reject(new TypeError('fetch failed')),
          startTask: async ({ task }: { task: object }) => started.push({ hostId, ...task }),
        }),
      } as unknown as StepContext)
    expect(await run(19_000, false)).toMatchObject({ word: 'wait' })
    expect(await run(21_000, false)).toMatchObject({ word: 'fail', fault: { code: 'agent.unreachable' } })
    await run(0, true)
    expect(started).toMatchObject([{ hostId: 'h', kind, instanceId, database: 'shop' }])
  })
})

test('a merge that would do nothing, or of rows that nobody knows, is refused', () => {
  const guard = (more: object) => () => mergeFlashback.guard?.(asked('primary', { ...of, ...more }) as never)
  expect(guard({ insertMissing: false })).toThrow('has to insert, restore or delete')
  expect(guard({ selected: [1] })).toThrow('selected rows are those of a comparison')
  const comparison = OperationId.parse('0d8f2a9e-6c51-4a30-9f4e-1d2c3b4a5f61')
  expect(guard({ comparison })).toThrow('selected rows are those of a comparison')
  expect(guard({ comparison, selected: [1] })).not.toThrow()
})
