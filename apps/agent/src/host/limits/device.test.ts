import { mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeScratchDirectory } from '@floe/testkit'
import { afterAll, expect, test } from 'vitest'
import { mountAbove } from '../mount-tables'
import { busyMsIn, deviceBusyMs, devicesOf, numberOf, parseMountedDevices, wholeDevice } from './device'

const scratch = makeScratchDirectory('device')
afterAll(() => scratch.remove())

test('a device number is read as stat gives it, also a large one', () => {
  expect(numberOf(0xfe01n)).toBe('254:1')
  expect(numberOf(0x1031_0305n)).toBe('259:66309')
  expect(numberOf(0x1000_0000_0501n)).toBe('4101:1')
})

test('a partition is limited with its whole disk; what is no block device is none', () => {
  const disk = join(scratch.path, 'devices/nvme0n1')
  mkdirSync(join(disk, 'nvme0n1p1'), { recursive: true })
  mkdirSync(join(scratch.path, 'dev/block'), { recursive: true })
  writeFileSync(join(disk, 'dev'), '259:0\n')
  writeFileSync(join(disk, 'nvme0n1p1/partition'), '1\n')
  symlinkSync('../../devices/nvme0n1', join(scratch.path, 'dev/block/259:0'))
  symlinkSync('../../devices/nvme0n1/nvme0n1p1', join(scratch.path, 'dev/block/259:1'))
  const whole = { number: '259:0', name: 'nvme0n1' }
  expect(wholeDevice('259:0', scratch.path)).toEqual(whole)
  expect(wholeDevice('259:1', scratch.path)).toEqual(whole)
  expect(wholeDevice('0:52', scratch.path)).toBeNull()
})

test('the deepest mount point above a path is its file system', () => {
  const mounts = parseMountedDevices(
    [
      '22 1 254:0 / / rw - ext4 /dev/vda rw',
      '30 22 7:0 / /srv/wal rw - xfs /dev/loop0 rw',
      '31 22 7:1 / /srv/with\\040space rw - xfs /dev/loop1 rw',
      '32 30 7:2 / /srv/wal rw - xfs /dev/loop2 rw',
    ].join('\n'),
  )
  const on = (path: string) => mountAbove(path, mounts)?.number
  expect(on('/srv/wallet/x')).toBe('254:0')
  expect(on('/srv/wal')).toBe('7:2')
  expect(on('/srv/wal/pg_wal')).toBe('7:2')
  expect(on('/srv/with space/a')).toBe('7:1')
})

test('a pg_wal that is missing, a file or a link to nowhere costs no limit of the data', () => {
  const data = join(scratch.path, 'data')
  mkdirSync(data)
  const { data: device } = devicesOf(data)
  const nowhereElse = { data: device, wal: device, tablespaces: [] }
  expect(devicesOf(data)).toEqual(nowhereElse)
  writeFileSync(join(data, 'pg_wal'), '')
  expect(devicesOf(data)).toEqual(nowhereElse)
  rmSync(join(data, 'pg_wal'))
  symlinkSync('/nowhere/at/all', join(data, 'pg_wal'))
  expect(devicesOf(data).data).toEqual(device)
})

test('each device that a tablespace lies on is told once, besides those of data and WAL', () => {
  const [data, sys] = [join(scratch.path, 'spaces'), join(scratch.path, 'sys')]
  const own = numberOf(statSync(scratch.path, { bigint: true }).dev)
  mkdirSync(join(data, 'pg_tblspc'), { recursive: true })
  mkdirSync(join(sys, 'dev/block'), { recursive: true })
  const devices = { [own]: 'vda', '7:0': 'loop0', '7:1': 'loop1', '7:2': 'loop2' }
  for (const [number, name] of Object.entries(devices)) {
    mkdirSync(join(sys, 'devices', name), { recursive: true })
    symlinkSync(`../../devices/${name}`, join(sys, 'dev/block', number))
  }
  const mountinfo = () =>
    [
      `22 1 ${own} / / rw - ext4 /dev/vda rw`,
      '30 22 7:0 / /srv/wal rw - xfs /dev/loop0 rw',
      '31 22 7:1 / /srv/fast rw - xfs /dev/loop1 rw',
      '32 22 7:2 / /srv/slow rw - xfs /dev/loop2 rw',
      '33 22 0:52 / /srv/memory rw - tmpfs tmpfs rw',
    ].join('\n')
  const names = () => devicesOf(data, mountinfo, sys).tablespaces.map((d) => d.name)
  expect(names()).toEqual([])
  symlinkSync('/srv/wal/pg_wal', join(data, 'pg_wal'))
  const link = (name: string, target: string) => symlinkSync(target, join(data, 'pg_tblspc', name))
  link('16400', '/srv/fast/a')
  link('16401', '/srv/fast/b')
  link('16402', '/srv/slow')
  // beside the data, beside WAL, in memory, and no tablespace
  link('16403', '/home/space')
  link('16404', '/srv/wal/space')
  link('16405', '/srv/memory/space')
  link('other', '/srv/slow/other')
  expect(names().sort()).toEqual(['loop1', 'loop2'])
  rmSync(join(data, 'pg_tblspc'), { recursive: true })
  symlinkSync('/srv', join(data, 'pg_tblspc'))
  expect(names()).toEqual([])
})

test('how long a device had something to do is read, and null where there is none', () => {
  const stat =
    '     288        2     5620       48      113      175    46514       93        0      132      218        4\n'
  expect(busyMsIn(stat)).toBe(132)
  expect(busyMsIn('')).toBeNull()
  expect(deviceBusyMs('0:0', '/nowhere')).toBeNull()
})
