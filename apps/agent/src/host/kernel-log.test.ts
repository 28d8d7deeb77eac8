import { uptime } from 'node:os'
import { expect, test } from 'vitest'
import { lastKillIn, oomKillOf, readKernelLog } from './kernel-log'

// as a kernel 6.1 wrote them
const killed =
  'Out of memory: Killed process 5032 (postgres) total-vm:21087128kB, anon-rss:19611168kB, file-rss:248kB, shmem-rss:0kB, UID:0 pgtables:39408kB oom_score_adj:0'
const records = [
  '6,1390,100000000,-;Memory cgroup out of memory: Killed process 77 (postgres) total-vm:1kB, anon-rss:1kB\n',
  '4,1391,5141672911,-;postgres invoked oom-killer: gfp_mask=0x440dc0(GFP_KERNEL_ACCOUNT|__GFP_ZERO), order=0\n',
  '6,1392,5141675308,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=postgres,pid=5032,uid=0\n',
  `3,1393,5141675350,-;${killed}\n SUBSYSTEM=memory\n`,
  '6,1394,5142000000,-;audit: something else of process 5032 \n',
]

test('a kill for want of memory is found by its pid, while it is fresh', () => {
  expect(oomKillOf(records, 5032, 60_000, 5_150_000)).toBe(killed)
  expect(oomKillOf(records, 503, 60_000, 5_150_000)).toBeUndefined()
  expect(oomKillOf(records, 5032, 60_000, 9_000_000)).toBeUndefined()
  // an older process had this pid
  expect(oomKillOf(records, 77, 60_000, 5_150_000)).toBeUndefined()
  expect(oomKillOf(records, 77, 10_000_000, 5_150_000)).toContain('Memory cgroup')
})

test('the log of this machine is read without waiting, or refused', () => {
  expect(readKernelLog('/nowhere')).toBeNull()
  const began = performance.now()
  const own = readKernelLog()
  expect(performance.now() - began).toBeLessThan(5_000)
  for (const text of own ?? []) expect(text).toMatch(/^\d+,\d+,\d+,/)
  expect(oomKillOf(own ?? [], -1, 60_000, uptime() * 1_000)).toBeUndefined()
})

test('the last kill in a group is told with its process, and whether the group’s own limit was it', () => {
  const id = '019f3c52-8f1e-7d6a-a3b1-2f4a6c1d9e55'
  // as a kernel 6.18 wrote them, on cgroup v1
  const ofGroup = (at: number, limited: string, group: string, task: string) =>
    `6,422,${at},-;oom-kill:constraint=${limited === '' ? 'CONSTRAINT_NONE' : 'CONSTRAINT_MEMCG'},nodemask=(null),cpuset=/,mems_allowed=0,${limited === '' ? 'global_oom' : `oom_memcg=${limited}`},task_memcg=${group},task=${task},pid=22108,uid=50001\n`
  const own = `/floe/${id}`
  const log = [
    ofGroup(1_000_000, own, own, 'postgres'),
    ofGroup(2_000_000, own, `${own}/sessions`, 'x,task_memcg=/a,pid=1'),
    ofGroup(3_000_000, '/other', '/other', `,task_memcg=${own},task=y`),
  ]
  expect(lastKillIn(log.slice(0, 1), id)).toEqual({
    ...{ uptimeMs: 1_000, pid: 22_108, name: 'postgres', ownLimit: true },
  })
  // a process calls itself what it likes
  expect(lastKillIn(log, id)).toEqual({
    ...{ uptimeMs: 2_000, pid: 22_108, name: 'x,task_memcg=/a,pid=1', ownLimit: true },
  })
  expect(lastKillIn([...log, ofGroup(4_000_000, '', own, 'dd')], id)).toMatchObject({ ownLimit: false })
  expect(lastKillIn([...log, ofGroup(4_000_000, '/', own, 'dd')], id)).toMatchObject({ ownLimit: false })
  expect(lastKillIn(log, 'nobody')).toBeNull()
  expect(lastKillIn(records, id)).toBeNull()
})
