import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { HostCheck } from '@floe/domain'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { checkHost } from './host-check'

const program = fileURLToPath(new URL('../../../../infra/host-check/floe-host-check', import.meta.url))

/** A machine that is as wanted, as the kernel would describe it below `root`. */
let root: string
const put = (path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}
const nvme = '259:0 / /data rw,noatime shared:1 - xfs /dev/nvme0n1p1 rw,attr2,inode64'
const mounted = (...lines: string[]) =>
  put('proc/self/mountinfo', `${lines.map((line, i) => `${i + 20} 1 ${line}`).join('\n')}\n`)
const disk = (name: string, number: string, queue: Record<string, string>, partition?: string) => {
  const at = `sys/devices/${name}`
  mkdirSync(join(root, 'sys/dev/block'), { recursive: true })
  mkdirSync(join(root, 'sys/block'), { recursive: true })
  mkdirSync(join(root, at), { recursive: true })
  symlinkSync(`../devices/${name}`, join(root, 'sys/block', name))
  for (const [file, text] of Object.entries(queue)) put(`${at}/queue/${file}`, `${text}\n`)
  if (partition) put(`${at}/${partition}/partition`, '1\n')
  symlinkSync(`../../devices/${name}${partition ? `/${partition}` : ''}`, join(root, 'sys/dev/block', number))
}
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'floe-host-check-'))
  for (const [name, value] of Object.entries({
    'vm/dirty_background_bytes': '104857600',
    'vm/dirty_bytes': '1073741824',
    'vm/dirty_background_ratio': '0',
    'vm/dirty_ratio': '0',
    'vm/dirty_writeback_centisecs': '100',
    'vm/dirty_expire_centisecs': '3000',
    'vm/swappiness': '1',
    'vm/overcommit_memory': '0',
    'vm/overcommit_ratio': '50',
    'fs/nr_open': '1048576',
    'net/core/somaxconn': '4096',
    'kernel/sched_autogroup_enabled': '0',
    'kernel/osrelease': '6.1.0',
    'kernel/hostname': 'db-1',
  }))
    put(`proc/sys/${name}`, `${value}\n`)
  put('proc/meminfo', 'MemTotal:       16777216 kB\nMemFree: 1 kB\n')
  put(
    'proc/self/limits',
    'Limit  Soft Limit  Hard Limit  Units\nMax open files            1048576      1048576      files\n',
  )
  put('sys/devices/system/cpu/online', '0-5,8\n')
  put('sys/kernel/mm/transparent_hugepage/enabled', 'always [madvise] never\n')
  put('sys/devices/system/clocksource/clocksource0/current_clocksource', 'tsc\n')
  disk(
    'nvme0n1',
    '259:0',
    { rotational: '0', write_cache: 'write back', scheduler: '[none] mq-deadline' },
    'nvme0n1p1',
  )
  mkdirSync(join(root, 'data'))
  mounted(nvme)
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const check = (...paths: string[]) => checkHost({ root, paths })
const lineOf = (it: HostCheck, name: string) => it.lines.find((line) => line.name === name)
const notAsWanted = (it: HostCheck) =>
  it.lines.filter((line) => line.severity !== 'ok').map((line) => `${line.severity} ${line.name}`)
const run = (...words: string[]) => spawnSync(program, ['--root', root, ...words], { encoding: 'utf8' })

test('a machine that is as wanted has nothing to improve, and is described', async () => {
  const it = await check()
  expect(notAsWanted(it)).toEqual([])
  expect(it).toMatchObject({ host: 'db-1', kernel: '6.1.0', cpus: 7, memoryBytes: 2 ** 34, container: false })
  expect(it.disks).toEqual([
    {
      ...{ mount: '/data', device: '/dev/nvme0n1p1', disk: 'nvme0n1', fileSystem: 'xfs' },
      ...{ options: 'rw,noatime,rw,attr2,inode64', nvme: true, rotational: false },
      ...{ writeCache: 'write back', scheduler: 'none' },
      ...{ sizeBytes: expect.any(Number), freeBytes: expect.any(Number) },
    },
  ])
  expect(it.lines.filter((line) => line.command !== null)).toEqual([])
})

describe('what gives up durability is a fault, and nothing else is', () => {
  test('nobarrier, barrier=0 and data=writeback', async () => {
    mounted(
      '259:0 / /data rw,noatime - ext4 /dev/nvme0n1p1 rw,nobarrier',
      '259:0 / /data/a rw,noatime - ext4 /dev/nvme0n1p1 rw,barrier=0',
      '259:0 / /data/b rw,noatime - ext4 /dev/nvme0n1p1 rw,data=writeback',
      '259:0 / /data/c rw,noatime - xfs /dev/nvme0n1p1 rw,nobarrier',
    )
    const it = await check('/data', '/data/a', '/data/b', '/data/c')
    const mounts = ['/data', '/data/a', '/data/b', '/data/c']
    expect(notAsWanted(it)).toEqual(mounts.map((mount) => `fault durability of ${mount}`))
    expect(mounts.map((mount) => lineOf(it, `durability of ${mount}`)?.actual)).toEqual([
      'nobarrier',
      'barrier=0',
      'data=writeback',
      'nobarrier',
    ])
    expect(lineOf(it, 'durability of /data/a')?.command).toMatch(/^mount -o remount,barrier=1 \/data\/a /)
    expect(run().status).toBe(3)
  })

  test('ext4 with data=ordered and barriers has none; memory as a disk has', async () => {
    mounted('259:0 / /data rw,noatime - ext4 /dev/nvme0n1p1 rw,data=ordered,barrier=1')
    expect(notAsWanted(await check())).toEqual([])
    mounted('0:30 / /data rw,noatime - tmpfs tmpfs rw')
    expect(notAsWanted(await check('/data'))).toEqual(['fault file system of /data', 'unknown disk of /data'])
  })
})

test('each recommendation that is not kept is advice, with what is, why it matters and what mends it', async () => {
  const others: [name: string, file: string, content: string, actual: string][] = [
    ['vm.dirty_background_bytes', 'proc/sys/vm/dirty_background_bytes', '8', '8 B'],
    ['vm.dirty_bytes', 'proc/sys/vm/dirty_bytes', '8589934592', '8 GB'],
    ['vm.dirty_writeback_centisecs', 'proc/sys/vm/dirty_writeback_centisecs', '0', '0 cs'],
    ['vm.dirty_expire_centisecs', 'proc/sys/vm/dirty_expire_centisecs', '9000', '9000 cs'],
    ['vm.swappiness', 'proc/sys/vm/swappiness', '60', '60'],
    ['vm.overcommit_memory', 'proc/sys/vm/overcommit_memory', '1', '1'],
    ['fs.nr_open', 'proc/sys/fs/nr_open', '1024', '1024'],
    ['net.core.somaxconn', 'proc/sys/net/core/somaxconn', '128', '128'],
    ['kernel.sched_autogroup_enabled', 'proc/sys/kernel/sched_autogroup_enabled', '1', '1'],
    ['nofile', 'proc/self/limits', 'Max open files            1024     1048576    files', '1024'],
    [
      'transparent_hugepage',
      'sys/kernel/mm/transparent_hugepage/enabled',
      '[always] madvise never',
      'always',
    ],
    ['clocksource', 'sys/devices/system/clocksource/clocksource0/current_clocksource', 'hpet', 'hpet'],
    ['I/O scheduler of nvme0n1', 'sys/block/nvme0n1/queue/scheduler', 'none [mq-deadline]', 'mq-deadline'],
  ]
  for (const [, file, content] of others) put(file, `${content}\n`)
  mounted('259:0 / /data rw,relatime - btrfs /dev/nvme0n1p1 rw')
  const it = await check()
  const names = [...others.map(([name]) => name), 'file system of /data', 'access times of /data']
  expect(notAsWanted(it).sort()).toEqual(names.map((name) => `advice ${name}`).sort())
  for (const [name, , , actual] of others)
    expect(lineOf(it, name)).toMatchObject({
      actual,
      command: expect.any(String),
      why: expect.stringMatching(/.{30}/),
    })
  expect(run().status).toBe(0)
})

test('overcommit that is limited too tightly is advice, and is left to a person', async () => {
  put('proc/sys/vm/overcommit_memory', '2\n')
  expect(lineOf(await check(), 'vm.overcommit_memory')).toMatchObject({
    severity: 'advice',
    actual: '2 with vm.overcommit_ratio 50',
    command: expect.stringContaining('vm.overcommit_ratio = 90'),
  })
  expect(run('--dry-run').stdout).toContain('Nothing to change')
})

test('unwritten data as a share of memory is told in bytes', async () => {
  put('proc/sys/vm/dirty_background_bytes', '0\n')
  put('proc/sys/vm/dirty_background_ratio', '10\n')
  expect(lineOf(await check(), 'vm.dirty_background_bytes')).toMatchObject({
    severity: 'advice',
    actual: '10 % of memory, at most 1.6 GB',
  })
})

test('what cannot be read is unknown, never as wanted; a cache that is never flushed too', async () => {
  rmSync(join(root, 'proc'), { recursive: true })
  rmSync(join(root, 'sys'), { recursive: true })
  const bare = await check()
  expect(bare).toMatchObject({ host: null, kernel: null, cpus: null, memoryBytes: null, disks: [] })
  expect(new Set(bare.lines.map((line) => line.severity))).toEqual(new Set(['unknown']))
  expect(bare.lines.length).toBeGreaterThan(10)
})

test('a disk that never flushes is unknown, and how to find out is said', async () => {
  put('sys/block/nvme0n1/queue/write_cache', 'write through\n')
  const it = await check()
  expect(notAsWanted(it)).toEqual(['unknown write cache of nvme0n1'])
  expect(lineOf(it, 'write cache of nvme0n1')?.command).toContain('nvme id-ctrl /dev/nvme0n1')
})

test('a directory is on the file system that is mounted deepest, and last, over it', async () => {
  mounted(
    '8:1 / / rw,relatime - ext4 /dev/sda1 rw',
    '259:0 / /data rw,relatime - ext4 /dev/nvme0n1p1 rw',
    nvme,
    '8:2 / /database rw - btrfs /dev/sdb rw',
  )
  const it = await check(join('/data/instances/x'))
  expect(it.disks.map((d) => [d.mount, d.fileSystem])).toEqual([['/data', 'xfs']])
  expect((await check('/elsewhere')).disks.map((d) => d.mount)).toEqual(['/'])
})

test('LVM over NVMe is NVMe, over anything else it is not', async () => {
  disk('dm-0', '253:0', { rotational: '0', write_cache: 'write back', scheduler: 'none' })
  put('sys/devices/dm-0/slaves/nvme0n1p1/x', '')
  mounted('253:0 / /data rw,noatime - xfs /dev/mapper/vg-data rw')
  expect((await check()).disks[0]).toMatchObject({ disk: 'dm-0', nvme: true })
  put('sys/devices/dm-0/slaves/sda/x', '')
  expect((await check()).disks[0]).toMatchObject({ disk: 'dm-0', nvme: false })
})

test('strange names and contents are told as they are, in printable characters, and are in no command', async () => {
  const evil = '/da\\040ta";$(touch\\040/tmp/x)\\012\\033[31m'
  mounted(`259:0 / ${evil} rw,relatime - ext4 /dev/nvme0n1p1 rw,nobarrier`)
  put('proc/sys/vm/swappiness', `60"},{"severity":"ok\u001b[2J${'9'.repeat(9_000)}`)
  put('proc/sys/kernel/hostname', 'a\u0000b\u00ff`id`')
  put('sys/devices/system/clocksource/clocksource0/current_clocksource', 'tsc\\"\u0007')
  const it = await check()
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is what is tested
  expect(JSON.stringify(it)).not.toMatch(/[\u0000-\u001f\u007f-\uffff]/)
  const shown = '/da ta";$(touch /tmp/x)\\012\\033[31m'
  expect(it.disks[0]?.mount).toBe(shown)
  expect(lineOf(it, `durability of ${shown}`)).toMatchObject({ severity: 'fault', command: null })
  expect(lineOf(it, 'vm.swappiness')).toMatchObject({ severity: 'unknown' })
  expect(lineOf(it, 'clocksource')).toMatchObject({ severity: 'advice', actual: 'tsc\\"\\007' })
  for (const { command } of it.lines) expect(command ?? '').not.toContain('touch')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
  expect(run().stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\uffff]/)
})

test('a file that is none, or has no end, does not hold it up', async () => {
  rmSync(join(root, 'proc/sys/vm/swappiness'))
  spawnSync('mkfifo', [join(root, 'proc/sys/vm/swappiness')])
  rmSync(join(root, 'proc/sys/fs/nr_open'))
  symlinkSync('/dev/zero', join(root, 'proc/sys/fs/nr_open'))
  expect(notAsWanted(await check())).toEqual(['unknown vm.swappiness', 'unknown fs.nr_open'])
})

describe('--apply', () => {
  beforeEach(() => {
    mkdirSync(join(root, 'etc/systemd'), { recursive: true })
    put('proc/sys/vm/swappiness', '60\n')
    put('sys/kernel/mm/transparent_hugepage/enabled', '[always] madvise never\n')
  })
  const sysctls = () => readFileSync(join(root, 'etc/sysctl.d/60-floe.conf'), 'utf8')

  test('--dry-run shows what would change, and changes nothing', () => {
    const { status, stdout } = run('--dry-run')
    expect([status, stdout]).toEqual([0, expect.stringContaining('+vm.swappiness = 1')])
    expect(stdout).toContain('now: transparent_hugepage: always -> madvise')
    expect(run('--dry-run').stdout).toBe(stdout)
    expect(sysctls).toThrow('ENOENT')
  })

  test('wants the name of the machine typed', () => {
    for (const typed of ['', 'yes', 'db-2']) {
      const { status, stderr } = spawnSync(program, ['--root', root, '--apply'], {
        encoding: 'utf8',
        input: `${typed}\n`,
      })
      expect([status, stderr]).toEqual([1, expect.stringContaining('nothing was changed')])
    }
    expect(sysctls).toThrow('ENOENT')
    expect(spawnSync(program, ['--root', root, '--apply'], { input: 'db-1\n' }).status).toBe(0)
    expect(sysctls()).toMatch(/^# Written by floe-host-check.*\nvm\.swappiness = 1\n$/)
  })

  test('writes only what is not as wanted, twice the same, and keeps what it wrote once it is as wanted', () => {
    expect(run('--apply', '--confirm', 'db-1').status).toBe(0)
    expect(readFileSync(join(root, 'etc/tmpfiles.d/60-floe.conf'), 'utf8')).toContain('madvise')
    const first = sysctls()
    expect(run('--apply', '--confirm', 'db-1').status).toBe(0)
    put('proc/sys/vm/swappiness', '1\n')
    put('sys/kernel/mm/transparent_hugepage/enabled', 'always [madvise] never\n')
    expect(run('--dry-run').stdout).toContain('Nothing to change')
    put('proc/sys/net/core/somaxconn', '128\n')
    expect(run('--apply', '--confirm', 'db-1').status).toBe(0)
    expect(sysctls()).toBe(`${first}net.core.somaxconn = 4096\n`)
  })

  test('leaves alone what somebody else wrote under that name, and what a link leads to', () => {
    put('etc/sysctl.d/60-floe.conf', 'vm.swappiness = 30\n')
    expect(run('--apply', '--confirm', 'db-1')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('was not written by'),
    })
    expect(sysctls()).toBe('vm.swappiness = 30\n')
    rmSync(join(root, 'etc/sysctl.d/60-floe.conf'))
    put(
      'etc/other',
      '# Written by floe-host-check, which may replace it; see docs/guide/host-check.md of Floe.\n',
    )
    symlinkSync('../other', join(root, 'etc/sysctl.d/60-floe.conf'))
    expect(run('--apply', '--confirm', 'db-1').status).toBe(1)
  })
})

test('this very machine can be checked, and nothing is said without a reason', async () => {
  const it = await checkHost({ paths: [tmpdir()] })
  expect(it.lines.length).toBeGreaterThan(10)
  for (const line of it.lines) expect(line.why.length).toBeGreaterThan(20)
})
