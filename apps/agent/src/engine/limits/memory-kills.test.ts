import { uptime } from 'node:os'
import { join } from 'node:path'
import { makeScratchDirectory } from '@floe/testkit'
import { afterAll, expect, test } from 'vitest'
import { MemoryKills } from './memory-kills'

const scratch = makeScratchDirectory('memory-kills')
afterAll(() => scratch.remove())

const id = '019f3c52-8f1e-7d6a-a3b1-2f4a6c1d9e55'
const killAt = (agoMs: number, pid: number) =>
  `6,1,${Math.round((uptime() * 1_000 - agoMs) * 1_000)},-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/floe/${id},task_memcg=/floe/${id},task=postgres,pid=${pid},uid=50001\n`
let records: string[] | null = []
const kills = (name: string) =>
  new MemoryKills({
    ...{ instanceId: id, file: join(scratch.path, name, 'memory-kills.json'), records: () => records },
    onError: (error) => {
      throw error
    },
  })

test('a count that grows is a kill, with what the kernel’s log tells of it, and the next agent knows it', () => {
  const first = kills('a')
  first.see(0)
  expect(first.last).toBeNull()
  records = [killAt(60_000, 7)]
  first.see(1)
  expect(first.last).toMatchObject({ process: { pid: 7, name: 'postgres' }, cause: 'limit' })
  expect(Math.abs((first.last?.at ?? 0) - (Date.now() - 60_000))).toBeLessThan(30_000)
  const next = kills('a')
  next.see(1)
  expect(next.last).toEqual(first.last)
  // one more while no agent looked
  records = [...records, killAt(10_000, 8)]
  next.see(2)
  expect(next.last?.process?.pid).toBe(8)
})

test('a group that is made again counts from 0 on', () => {
  const of = kills('b')
  of.see(0)
  of.see(3)
  const before = of.last
  expect(before).not.toBeNull()
  of.see(null)
  of.see(0)
  expect(of.last).toEqual(before)
  records = []
  of.see(1)
  expect(of.last).not.toEqual(before)
})

test('without the kernel’s log, or where it tells only of an earlier one, it is a kill of an unknown process, now', () => {
  const of = kills('c')
  of.see(0)
  records = null
  of.see(1)
  expect(of.last).toMatchObject({ process: null, cause: null })
  const at = of.last?.at ?? 0
  records = [killAt(60_000, 9)]
  of.see(2)
  expect(of.last).toMatchObject({ process: null, cause: null })
  expect(of.last?.at).toBeGreaterThanOrEqual(at)
})

test('what was counted before anybody looked is no kill of now', () => {
  const of = kills('d')
  of.see(5)
  expect(of.last).toBeNull()
  of.see(6)
  expect(of.last).not.toBeNull()
})
