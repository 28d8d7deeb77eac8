import type { InstanceId } from '@floe/domain'
import { expect, test } from 'vitest'
import type { RegisteredInstance } from '../registry/registered-instance'
import { keepPrimary } from './keep-primary'

const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}` as InstanceId

test('a newer primary takes the place of an older one, and never the other way round', () => {
  let registered = {} as RegisteredInstance
  let stored = 0
  const registry = {
    get: () => registered,
    update: (_: string, change: Partial<RegisteredInstance>) => {
      stored++
      registered = { ...registered, ...change }
      return registered
    },
  }
  const tell = (n: number, timeline: number) => {
    keepPrimary(registry, id(9), { instanceId: id(n), timeline })
    const { instanceId, timeline: kept } = registered.primaryKnown ?? {}
    return [instanceId, kept]
  }
  expect(tell(1, 1)).toEqual([id(1), 1])
  expect(tell(2, 3)).toEqual([id(2), 3])
  // a console that was restored from before
  expect(tell(1, 1)).toEqual([id(2), 3])
  expect(tell(1, 2)).toEqual([id(2), 3])
  expect(stored).toBe(2)
  // told again: nothing to store
  expect(tell(2, 3)).toEqual([id(2), 3])
  expect(stored).toBe(2)
  expect(tell(1, 4)).toEqual([id(1), 4])
})
