import { fault } from '@floe/domain'
import { expect, test } from 'vitest'
import type { Account } from './routers/account/account.types'
import { keepAsking } from './still-allowed'

const olga: Account = { kind: 'user', id: '1', name: 'Olga', email: null, role: 'viewer' }

test('a stream ends within half a minute after its session did, and asks no more often than that', async () => {
  let now = 0
  let actor: Account | null = olga
  let asked = 0
  const check = keepAsking(
    {
      findActor: async () => {
        asked++
        return actor
      },
    },
    () => now,
  )
  now = 29_999
  await check()
  expect(asked).toBe(0)
  now = 30_000
  await check()
  await check()
  expect(asked).toBe(1)
  actor = null
  now = 60_000
  await expect(check()).rejects.toThrow('you are not signed in')
})

test('a control database that is away ends no stream', async () => {
  let now = 0
  const away = () => Promise.reject(fault('database.unreachable', 'could not reach the control database'))
  const check = keepAsking({ findActor: away }, () => now)
  now = 30_000
  await check()
})
