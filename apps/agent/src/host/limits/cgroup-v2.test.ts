import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { noLimits } from '@floe/domain'
import type { GroupMount } from '@floe/host/control-groups'
import { makeScratchDirectory } from '@floe/testkit'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { CgroupSystemd } from './cgroup-systemd'
import { CgroupV2 } from './cgroup-v2'

const GB = 1024 ** 3
const data = { number: '259:0', name: 'nvme0n1' }
const wal = { number: '259:5', name: 'nvme1n1' }
const scratch = makeScratchDirectory('cgroup-v2')
afterAll(() => scratch.remove())

let round = 0
let root = ''
/** Files as the kernel makes them with a group: these only hold what was written. */
function group(path: string, files: Record<string, string> = {}): string {
  const directory = join(root, path)
  mkdirSync(directory, { recursive: true })
  const all = { 'cgroup.controllers': 'cpu memory io', 'cgroup.subtree_control': 'cpu memory io', ...files }
  for (const [name, text] of Object.entries({ 'cgroup.procs': '', ...all }))
    writeFileSync(join(directory, name), text)
  return directory
}
const ofKernel = { 'cpu.max': 'max 100000', 'memory.high': 'max', 'memory.max': 'max' }
const text = (path: string) => readFileSync(join(root, path), 'utf8')
const mount = (): GroupMount => ({ version: 2, controllers: [''], root: '/', path: root })
const groups = new Map<number, string>()
const groupsOf = (pid: number) => groups.get(pid) ?? ''

beforeEach(() => {
  root = join(scratch.path, String(++round))
  groups.clear()
  groups.set(process.pid, '0::/\n')
})

const limits = {
  ...noLimits,
  cpu: 0.7,
  memoryHigh: 3 * GB,
  memoryMax: 4 * GB,
  dataWriteIops: 800,
  walWriteIops: 4_000,
  walReadBytes: 1_048_576,
}

describe('cgroup v2', () => {
  test('limits are written in the kernel’s words, by device, and read back', async () => {
    group('')
    group('floe')
    group('floe/one', { ...ofKernel, 'cgroup.subtree_control': '' })
    group('floe/one/sessions', { 'io.max': '259:5 rbps=1 wbps=max riops=max wiops=max\n' })
    group('floe/one/background')
    const driver = new CgroupV2(mount(), groupsOf)
    driver.prepare('one')
    await driver.apply('one', limits, { data, wal })
    // pages that its parts write are charged to them, so that writing them back is limited, too
    expect(text('floe/one/cgroup.subtree_control')).toBe('+memory +io')
    expect(text('floe/one/cpu.max')).toBe('70000 100000')
    expect(text('floe/one/memory.high')).toMatch(`${3 * GB}`)
    // the kernel takes one line a write; a file keeps the last, over what was there
    expect(text('floe/one/sessions/io.max')).toContain('259:0 riops=max wiops=800 rbps=max wbps=max')
    writeFileSync(
      join(root, 'floe/one/sessions/io.max'),
      '259:0 rbps=max wbps=max riops=max wiops=800\n259:5 rbps=1048576 wbps=max riops=max wiops=4000\n',
    )
    expect(driver.inForce('one', { data, wal })).toEqual(limits)
    // WAL on the data's device has no limits of its own
    expect(driver.inForce('one', { data, wal: data })).toMatchObject({
      dataWriteIops: 800,
      walWriteIops: null,
    })
  })

  test('limits of data hold on each device that a tablespace lies on', async () => {
    const space = { number: '259:9', name: 'nvme2n1' }
    const devices = { data, wal, tablespaces: [space] }
    group('floe/one', ofKernel)
    const io = (number: string, wiops: number) => `${number} rbps=max wbps=max riops=max wiops=${wiops}\n`
    group('floe/one/sessions', { 'io.max': '' })
    const driver = new CgroupV2(mount(), groupsOf)
    await driver.apply(
      'one',
      { ...noLimits, dataWriteIops: 800 },
      { data: null, wal: null, tablespaces: [space] },
    )
    expect(text('floe/one/sessions/io.max')).toBe('259:9 riops=max wiops=800 rbps=max wbps=max')
    const inForce = (on: string) => {
      writeFileSync(join(root, 'floe/one/sessions/io.max'), on)
      return driver.inForce('one', devices)?.dataWriteIops
    }
    expect(inForce(io('259:0', 800) + io('259:9', 800))).toBe(800)
    // one that was made since
    expect(inForce(io('259:0', 800))).toBeNull()
  })

  test('a process is moved only where it is not, into the leaf of its part', () => {
    group('')
    group('floe')
    for (const path of ['floe/one', 'floe/one/sessions', 'floe/one/background']) group(path)
    const driver = new CgroupV2(mount(), groupsOf)
    groups.set(77, '0::/floe/one/sessions\n')
    expect(driver.place('one', 77, 'sessions')).toBe(true)
    expect(text('floe/one/sessions/cgroup.procs')).toBe('')
    expect(driver.place('one', 77, 'background')).toBe(true)
    expect(text('floe/one/background/cgroup.procs')).toBe('77')
    // a group of another's that ends alike is another one
    groups.set(78, '0::/elsewhere/floe/one/sessions\n')
    expect(driver.place('one', 78, 'sessions')).toBe(true)
    expect(text('floe/one/sessions/cgroup.procs')).toBe('78')
    expect(driver.place('one', 79, 'sessions')).toBe(false)
  })

  test('a controller that the host does not have is said of each limit that needs it', () => {
    group('', { 'cgroup.controllers': 'cpu memory' })
    const driver = new CgroupV2(mount(), groupsOf)
    expect(driver.gaps(limits).map((gap) => gap.limit)).toEqual([
      'dataWriteIops',
      'walWriteIops',
      'walReadBytes',
    ])
  })

  test('what was used is read from the group and its sessions', () => {
    group('')
    group('floe')
    group('floe/one', {
      'cpu.stat': 'usage_usec 2500000\nthrottled_usec 500000\n',
      'memory.current': '300\n',
      'memory.stat': 'anon 100\nfile 150\nshmem 40\nkernel 10\nfile_dirty 60\nfile_writeback 5\n',
      'memory.events': 'high 3\noom_kill 2\n',
    })
    group('floe/one/sessions', {
      'io.stat': '259:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n',
      'io.pressure': 'some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0 total=9\n',
      'memory.pressure': 'some avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n',
    })
    expect(new CgroupV2(mount(), groupsOf).use('one')).toEqual({
      cpuSeconds: 2.5,
      cpuThrottledSeconds: 0.5,
      memoryBytes: 300,
      memoryHeldBytes: 150,
      outOfMemoryKills: 2,
      writeBackBytes: 65,
      ioWaitSeconds: 1.5,
      memoryWaitSeconds: 0.25,
      devices: new Map([['259:0', { readBytes: 10, writeBytes: 20, reads: 1, writes: 2 }]]),
    })
  })
})

describe('cgroup v2 with systemd', () => {
  const unit = 'floe-instance-one.service'
  const commands: string[][] = []
  const run = async (file: string, args: readonly string[]) => {
    commands.push([file, ...args])
    return { status: 0, signal: null, stdout: '', stderr: '' }
  }

  test('processors and memory are systemd’s to limit, I/O is limited below the unit', async () => {
    group('')
    group(`floe.slice/${unit}`, ofKernel)
    group(`floe.slice/${unit}/sessions`, { 'io.max': '' })
    const driver = new CgroupSystemd(mount(), groupsOf, run)
    groups.set(77, `0::/floe.slice/${unit}\n`)
    expect(driver.entrances()).toEqual([])
    driver.adopt('one', 77)
    expect(existsSync(join(root, `floe.slice/${unit}/background`))).toBe(true)
    await driver.apply('one', limits, { data, wal: data })
    expect(commands).toEqual([
      [
        'systemctl',
        'set-property',
        '--runtime',
        unit,
        'CPUQuota=70%',
        `MemoryHigh=${3 * GB}`,
        `MemoryMax=${4 * GB}`,
      ],
    ])
    expect(text(`floe.slice/${unit}/cpu.max`)).toBe('max 100000')
    expect(text(`floe.slice/${unit}/sessions/io.max`)).toBe('259:0 riops=max wiops=800 rbps=max wbps=max')
  })
  test('what systemd refuses leaves limits of I/O set, and is told', async () => {
    group('')
    group(`floe.slice/${unit}`, ofKernel)
    group(`floe.slice/${unit}/sessions`, { 'io.max': '' })
    const refused = { status: 1, signal: null, stdout: '', stderr: 'Access denied\n' }
    const driver = new CgroupSystemd(mount(), groupsOf, async () => refused)
    const applied = driver.apply('one', limits, { data, wal: data })
    await expect(applied).rejects.toMatchObject({ fault: { detail: 'Access denied' } })
    expect(text(`floe.slice/${unit}/sessions/io.max`)).toBe('259:0 riops=max wiops=800 rbps=max wbps=max')
  })
})
