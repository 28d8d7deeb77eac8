import { expect, test } from 'vitest'
import { directoryOf, parseGroupMounts, secondsWaited } from './control-groups'

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
