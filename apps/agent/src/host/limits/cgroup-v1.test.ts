import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { noLimits } from '@floe/domain'
import { makeScratchDirectory } from '@floe/testkit'
import { afterAll, expect, test } from 'vitest'
import { CgroupV1 } from './cgroup-v1'

const MB = 1024 ** 2
const scratch = makeScratchDirectory('cgroup-v1')
afterAll(() => scratch.remove())

const throttle = (what: string) => `blkio.throttle.${what}_device`

test('a limit that the kernel refuses leaves no other unset, and is told', async () => {
  const group = join(scratch.path, 'floe/one')
  mkdirSync(group, { recursive: true })
  // all controllers in one hierarchy; the file of the memory limit is missing, so that writing it fails
  const files = ['cpu.cfs_period_us', 'cpu.cfs_quota_us'].concat(
    ['read_iops', 'write_iops', 'read_bps', 'write_bps'].map(throttle),
  )
  for (const file of files) writeFileSync(join(group, file), '')
  const mount = {
    version: 1 as const,
    controllers: ['cpu', 'memory', 'blkio'],
    root: '/',
    path: scratch.path,
  }
  const driver = new CgroupV1([mount], () => '4:cpu,memory,blkio:/\n')
  const data = { number: '254:0', name: 'vda' }
  const limits = { ...noLimits, cpu: 0.5, memoryMax: 512 * MB, dataWriteIops: 800 }
  await expect(driver.apply('one', limits, { data, wal: data })).rejects.toThrow('memory.limit_in_bytes')
  expect(readFileSync(join(group, 'cpu.cfs_quota_us'), 'utf8')).toBe('50000')
  expect(readFileSync(join(group, throttle('write_iops')), 'utf8')).toBe('254:0 800')
  expect(existsSync(join(group, 'memory.limit_in_bytes'))).toBe(false)
})
