import { expect, test } from 'vitest'
import { directoryOf, ioUse, parseGroupMounts, secondsWaited, throttledUse } from './control-groups'

const below = (root: string) => ({ version: 2 as const, controllers: [''], root, path: '/sys/fs/cgroup' })

test('a group is found below the mount, also where the mount shows a part of all groups', () => {
  expect(directoryOf(below('/'), '/floe/one')).toBe('/sys/fs/cgroup/floe/one')
  expect(directoryOf(below('/box/ab'), '/box/ab/floe/one')).toBe('/sys/fs/cgroup/floe/one')
  expect(directoryOf(below('/box/ab'), '/box/ab')).toBe('/sys/fs/cgroup')
})

test('a group that the mount does not show leads nowhere but to the mount', () => {
  // a neighbour whose name begins alike
  expect(directoryOf(below('/box/ab'), '/box/abc/floe/one')).toBe('/sys/fs/cgroup')
  // outside of the agent's cgroup namespace
  expect(directoryOf(below('/'), '/../../../etc')).toBe('/sys/fs/cgroup')
  expect(directoryOf(below('/'), '/floe/../../../etc')).toBe('/sys/fs/cgroup')
})

test('only cgroup file systems are mounts of groups', () => {
  const lines = [
    '30 24 0:26 / /sys/fs/cgroup/blkio rw,nosuid - cgroup cgroup rw,blkio',
    '31 24 0:27 /box /sys/fs/cgroup rw - cgroup2 none rw',
    '32 24 0:28 / /tmp/cgroup rw - tmpfs cgroup2 rw',
  ].join('\n')
  expect(parseGroupMounts(lines)).toEqual([
    { version: 1, controllers: ['rw', 'blkio'], root: '/', path: '/sys/fs/cgroup/blkio' },
    { version: 2, controllers: [''], root: '/box', path: '/sys/fs/cgroup' },
  ])
})

test('seconds that some process waited are read, and what is not counted is not 0', () => {
  const some = 'some avg10=2.17 avg60=0.39 avg300=0.08 total=276887'
  expect(secondsWaited(`${some}\nfull avg10=2.17 avg60=0.39 avg300=0.08 total=9\n`)).toBe(0.276887)
  expect(secondsWaited('full avg10=0.00 total=9\n')).toBeNull()
  expect(secondsWaited(null)).toBeNull()
})

test('what a group read and wrote is told by device, in the words of cgroup v1 and of v2', () => {
  const bytes = '7:10 Read 1\n7:1 Read 4096\n7:1 Write 8192\n7:1 Sync 12288\nTotal 12289\n'
  const requests = '7:1 Read 12\n7:1 Write 34\nTotal 46\n'
  const used = { readBytes: 4_096, writeBytes: 8_192, reads: 12, writes: 34 }
  expect(throttledUse(bytes, requests).get('7:1')).toEqual(used)
  expect(throttledUse(null, requests).get('7:1')).toEqual({ ...used, readBytes: 0, writeBytes: 0 })
  const v2 =
    '7:10 rbytes=1 wbytes=2 rios=3 wios=4\n7:1 rbytes=4096 wbytes=8192 rios=12 wios=34 dbytes=0 dios=0\n'
  expect(ioUse(v2).get('7:1')).toEqual(used)
  expect(ioUse(v2).has('7:0')).toBe(false)
})
