import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { noLimits } from '@floe/domain'
import { makeScratchDirectory } from '@floe/testkit'
import { afterAll, expect, test } from 'vitest'
import { CgroupV1 } from './cgroup-v1'

const MB = 1024 ** 2
const scratch = makeScratchDirectory('cgroup-v1')
afterAll(() => scratch.remove())

const data = { number: '254:0', name: 'vda' }
/** All controllers in one hierarchy. */
const v1 = (path: string) => ({
  version: 1 as const,
  controllers: ['cpu', 'memory', 'blkio'],
  root: '/',
  path,
})
const v2 = (path: string) => ({ version: 2 as const, controllers: [''], root: '/', path })
const throttle = (what: string) => `blkio.throttle.${what}_device`

test('a limit that the kernel refuses leaves no other unset, and is told', async () => {
  const group = join(scratch.path, 'floe/one')
  mkdirSync(group, { recursive: true })
  // the file of the memory limit is missing, so that writing it fails
  const files = ['cpu.cfs_period_us', 'cpu.cfs_quota_us'].concat(
    ['read_iops', 'write_iops', 'read_bps', 'write_bps'].map(throttle),
  )
  for (const file of files) writeFileSync(join(group, file), '')
  const driver = new CgroupV1([v1(scratch.path)], () => '4:cpu,memory,blkio:/\n')
  const limits = { ...noLimits, cpu: 0.5, memoryMax: 512 * MB, dataWriteIops: 800 }
  await expect(driver.apply('one', limits, { data, wal: data })).rejects.toThrow('memory.limit_in_bytes')
  expect(readFileSync(join(group, 'cpu.cfs_quota_us'), 'utf8')).toBe('50000')
  expect(readFileSync(join(group, throttle('write_iops')), 'utf8')).toBe('254:0 800')
  expect(existsSync(join(group, 'memory.limit_in_bytes'))).toBe(false)
})

test('where v2 is mounted beside v1, waits are counted there, without those of background processes', () => {
  const [limited, beside] = [join(scratch.path, 'limited'), join(scratch.path, 'beside')]
  const groups = new Map([[process.pid, '4:cpu,memory,blkio:/\n0::/agent\n']])
  const driver = new CgroupV1([v1(limited), v2(beside)], (pid) => groups.get(pid) ?? '')
  driver.prepare('one')
  const own = join(beside, 'agent/floe/one')
  expect(driver.entrances('one')).toContain(join(own, 'cgroup.procs'))
  writeFileSync(join(own, 'io.pressure'), 'some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n')
  expect(driver.use('one')).toMatchObject({ ioWaitSeconds: 1.5, memoryWaitSeconds: null })
  for (const directory of [
    own,
    `${own}-background`,
    join(limited, 'floe/one'),
    join(limited, 'floe/one-background'),
  ])
    writeFileSync(join(directory, 'cgroup.procs'), '')
  groups.set(77, '4:cpu,memory,blkio:/\n0::/agent\n')
  driver.place('one', 77, 'background')
  expect(readFileSync(join(`${own}-background`, 'cgroup.procs'), 'utf8')).toBe('77')
  expect(readFileSync(join(own, 'cgroup.procs'), 'utf8')).toBe('')
})

test('a hierarchy beside that cannot be written costs no limit', () => {
  const [limited, file] = [join(scratch.path, 'only'), join(scratch.path, 'file')]
  writeFileSync(file, '')
  const driver = new CgroupV1([v1(limited), v2(file)], () => '4:cpu,memory,blkio:/\n0::/\n')
  driver.prepare('one')
  expect(driver.entrances('one').every((path) => path.startsWith(limited))).toBe(true)
  expect(driver.use('one')).toMatchObject({ ioWaitSeconds: null })
})
