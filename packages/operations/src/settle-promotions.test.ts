import type { ClusterObserved } from '@floe/domain'
import { expect, test } from 'vitest'
import { promotionsOver } from './settle-promotions'
import type { StepContext } from './step'

const promotion = { instanceId: 'a', operationId: 'o', step: 'promote', attempt: 1, from: null }
const cluster = {
  members: [{ instanceId: 'a', hostId: 'h', hostState: 'online' }],
  holdings: { promotions: [promotion] },
} as unknown as ClusterObserved

const overWhere = (state: string, code: string | null = null) =>
  promotionsOver(
    {
      agentOf: () => ({ cancelTask: async () => ({ state, fault: code && { code, message: '' } }) }),
    } as unknown as Pick<StepContext, 'agentOf'>,
    cluster,
  )

test('a promotion is over once its task was refused, given up, or found WAL missing before it asked the engine', async () => {
  expect(await overWhere('cancelled')).toEqual([promotion])
  expect(await overWhere('failed', 'promote.behind')).toEqual([promotion])
})

test('a promotion that took place, or that the engine may still carry out, is not over', async () => {
  expect(await overWhere('running')).toEqual([])
  expect(await overWhere('succeeded')).toEqual([])
  expect(await overWhere('failed', 'promote.not_promoted')).toEqual([])
  expect(await overWhere('failed', 'instance.no_answer')).toEqual([])
})

test('of several attempts each has to be one that did not ask the engine, whatever the last one was', async () => {
  const third = { ...promotion, attempt: 3 }
  const over = (...codes: string[]) =>
    promotionsOver(
      {
        agentOf: () => ({
          cancelTask: async ({ attempt }: { attempt: number }) => {
            const code = codes[attempt - 1]
            return code
              ? { state: 'failed', fault: { code, message: '' } }
              : { state: 'cancelled', fault: null }
          },
        }),
      } as unknown as Pick<StepContext, 'agentOf'>,
      { ...cluster, holdings: { promotions: [third] } } as unknown as ClusterObserved,
    )
  expect(await over('promote.not_begun', 'promote.not_begun')).toEqual([third])
  expect(await over('instance.no_connection', 'promote.not_begun')).toEqual([])
})
