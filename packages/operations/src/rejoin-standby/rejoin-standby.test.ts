import type { PromotionBegun } from '@floe/domain'
import { expect, test } from 'vitest'
import { promotionsEnded } from './rejoin-standby'

test('a member that was fenced and follows again leaves no promotion unsettled, and that of another stays', () => {
  const begun = (instanceId: string, operationId: string) => ({ instanceId, operationId }) as PromotionBegun
  const holdings = { promotions: [begun('a', '1'), begun('b', '2'), begun('a', '3')] } as never
  expect(promotionsEnded({ clusterId: 'c' as never, holdings }, 'a')).toEqual([
    { kind: 'promotion-passed', clusterId: 'c', operationId: '1' },
    { kind: 'promotion-passed', clusterId: 'c', operationId: '3' },
  ])
})
