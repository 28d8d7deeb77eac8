import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MachineOfLoops, MEGABYTE, whyNoDisks } from './machine-of-loops'

const why = whyNoDisks()
const here = why ? ` (left out: ${why})` : ''

let machine: MachineOfLoops
beforeEach(() => {
  machine = new MachineOfLoops()
})
afterEach(() => machine.end())

/** Writes bytes into an image, or from its end where the place is negative. */
function write(file: string, place: number, bytes: string | Uint8Array) {
  const at = place < 0 ? readFileSync(file).length + place : place
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, Buffer.from(bytes as Uint8Array), 0, bytes.length, at)
  closeSync(descriptor)
}
const uuidOf = () => /^uuid (\S+)$/m.exec(machine.read('etc/floe/host-prepare.state'))?.[1]

describe.skipIf(why !== null)(`an empty disk${here}`, () => {
  test('--dry-run shows what would be done and does nothing', () => {
    const disk = machine.disk(400)
    const before = machine.fingerprint(disk)
    const { status, stdout } = machine.prepare(disk, '--dry-run')
    expect(status).toBe(0)
    expect(stdout).toContain(`disk: ${disk.device} (400 MB`)
    expect(stdout).toMatch(/^\+UUID=\S+ \S+\/data xfs noatime,\S*nofail\S* 0 0$/m)
    expect(machine.read('etc/fstab')).toBe('# of the system\n')
    expect(machine.has('etc/floe')).toBe(false)
    expect(machine.has('data')).toBe(false)
    expect(machine.fingerprint(disk)).toBe(before)
  })

  test('is formatted and mounted; a second run changes nothing, and one after a restart mounts it', () => {
    const disk = machine.disk(400)
    // its last line does not end, which must not become the beginning of ours
    machine.put('etc/fstab', 'tmpfs /tmp tmpfs rw 0 0')
    const first = machine.inside(
      `$prepare ${machine.words(disk)} && grep ' ${machine.mount} ' /proc/self/mountinfo && echo kept > ${machine.mount}/file
       cp /etc/fstab /etc/before
       $prepare ${machine.words(disk)}; echo "second $?"`,
    )
    expect(first.stderr).toBe('')
    expect(first.stdout).toMatch(/noatime.* - xfs \S+ .*logbsize=256k/)
    expect(first.stdout).toMatch(/Nothing to change.*\nsecond 0\n$/)
    const entry = `UUID=${uuidOf()} ${machine.mount} xfs noatime,logbsize=256k,nofail,x-systemd.device-timeout=60s 0 0`
    expect(machine.read('etc/fstab').split('\n')).toEqual([
      'tmpfs /tmp tmpfs rw 0 0',
      expect.stringMatching(/^# Written by floe-host-prepare/),
      entry,
      '',
    ])
    expect(machine.read('etc/before')).toBe(machine.read('etc/fstab'))
    const restarted = machine.inside(`$prepare ${machine.words(disk)} && cat ${machine.mount}/file`)
    expect([restarted.status, restarted.stdout]).toEqual([0, expect.stringMatching(/\nkept\n$/)])
    expect(restarted.stdout).not.toContain('make:')
    expect(spawnSync('xfs_repair', ['-n', disk.device]).status).toBe(0)
  })

  test('options that a person changed in fstab stay', () => {
    const disk = machine.disk(400)
    expect(machine.prepare(disk).status).toBe(0)
    const changed = machine.read('etc/fstab').replace('logbsize=256k', 'logbsize=64k')
    machine.put('etc/fstab', changed)
    expect(machine.inside(`$prepare ${machine.words(disk)} && mount`).stdout).toContain('logbsize=64k')
    expect(machine.read('etc/fstab')).toBe(changed)
  })

  test('nobody can write below the mount point while the disk is away', () => {
    const disk = machine.disk(400)
    const { stdout } = machine.prepare(disk)
    if (stdout.includes('cannot be made immutable')) return expect(stdout).toContain('RequiresMountsFor')
    expect(spawnSync('touch', [join(machine.mount, 'x')]).status).toBe(1)
  })

  test('nothing is done until the name of the machine is typed', () => {
    const disk = machine.disk(400)
    const before = machine.fingerprint(disk)
    const words = machine.words(disk).replace(/--confirm \S+/, '')
    for (const typed of ['', '\n', 'yes\n', `${machine.name}x\n`]) {
      const { status, stderr } = machine.inside(`$prepare ${words}`, typed)
      expect([status, stderr]).toEqual([3, expect.stringContaining('nothing was changed')])
    }
    expect(machine.fingerprint(disk)).toBe(before)
    expect(machine.inside(`$prepare ${words}`, `${machine.name}\n`).status).toBe(0)
  })

  test('the settings are those that the host check recommends', () => {
    const disk = machine.disk(400)
    for (const [name, value] of Object.entries({ 'vm/swappiness': '60', 'kernel/hostname': machine.name }))
      machine.put(`kernel/${name}`, `${value}\n`)
    mkdirSync(join(machine.root, 'kernel/kernel/random'))
    machine.put('pages', 'always [madvise] never\n')
    const swappiness = readFileSync('/proc/sys/vm/swappiness', 'utf8')
    // the kernel's own are those of the real machine: others lie over them
    const { status, stdout, stderr } = machine.inside(
      `set -e
       # a session that began before keeps its limit, which is no difference any more once it is set for others
       ulimit -n 1024
       mount --bind /proc/sys/kernel/random ${machine.root}/kernel/kernel/random
       mount --rbind ${machine.root}/kernel /proc/sys
       [ ! -e /sys/kernel/mm/transparent_hugepage/enabled ] ||
         mount --bind ${machine.root}/pages /sys/kernel/mm/transparent_hugepage/enabled
       $prepare ${machine.words(disk).replace('--no-settings', '')}
       $prepare ${machine.words(disk).replace('--no-settings', '')}`,
    )
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/\+vm\.swappiness = 1\n[\s\S]*Nothing to change/)
    expect(machine.read('etc/sysctl.d/60-floe.conf')).toContain('vm.swappiness = 1\n')
    expect(machine.read('kernel/vm/swappiness')).toBe('1\n')
    expect(readFileSync('/proc/sys/vm/swappiness', 'utf8')).toBe(swappiness)
  })
})

describe.skipIf(why !== null)(`a disk that holds anything is never touched${here}`, () => {
  const partitions = new Uint8Array(512)
  partitions.set([0x80, 0, 2, 0, 0x83, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1], 446)
  partitions.set([0x55, 0xaa], 510)
  const gpt = Buffer.alloc(92)
  gpt.write('EFI PART')
  const data: [what: string, fill: (file: string, device: string) => void, reason: RegExp][] = [
    ['an XFS', (_, device) => execFileSync('mkfs.xfs', ['-q', device]), /holds data: xfs/],
    ['a swap space', (_, device) => execFileSync('mkswap', [device]), /holds data: swap/],
    ['a partition table', (file) => write(file, 0, partitions), /holds data/],
    ['the second copy of a partition table', (file) => write(file, -512, gpt), /holds data/],
    [
      'an LVM volume',
      (file) => write(file, 512, 'LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001'),
      /holds data/,
    ],
    ['an encrypted volume', (file) => write(file, 0, 'LUKS\xba\xbe\0\x01'), /holds data/],
    ['bytes at its beginning', (file) => write(file, 70_000, 'x'), /no known signature/],
    ['bytes at its end', (file) => write(file, -70_000, 'x'), /no known signature/],
    ['bytes in its middle', (file) => write(file, 200 * MEGABYTE + 5, 'x'), /no known signature/],
  ]
  test.each(data)('%s', (_, fill, reason) => {
    const disk = machine.disk(400)
    fill(disk.file, disk.device)
    const before = machine.fingerprint(disk)
    const { status, stderr } = machine.prepare(disk)
    expect([status, stderr]).toEqual([3, expect.stringMatching(reason)])
    expect(machine.fingerprint(disk)).toBe(before)
    expect(machine.read('etc/fstab')).toBe('# of the system\n')
  })

  test('nor one that is mounted, here or where it cannot be seen', () => {
    const disk = machine.disk(400)
    execFileSync('mkfs.xfs', ['-q', disk.device])
    const { stdout } = machine.inside(
      `mkdir /run/m && mount ${disk.device} /run/m && $prepare ${machine.words(disk)} 2>&1; echo "here $?"
       unshare --mount umount /run/m
       unshare --mount sh -c 'umount /run/m; $prepare ${machine.words(disk)} 2>&1; echo "elsewhere $?"'`,
    )
    expect(stdout).toMatch(/: it is mounted\nhere 3\n/)
    expect(stdout).toMatch(/in use\nelsewhere 3\n/)
  })

  test('nor one that is too small, or read-only', () => {
    expect(machine.prepare(machine.disk(299)).stderr).toContain('smaller than 300 MB')
    expect(machine.prepare(machine.disk(400, '--read-only')).stderr).toContain('it is read-only')
    const disk = machine.disk(400)
    const { status, stderr } = machine.inside(`$prepare ${machine.words(disk).replace('--min-size 300', '')}`)
    expect([status, stderr]).toEqual([3, expect.stringContaining('smaller than 10240 MB')])
  })

  test('nor what is no disk, is given twice, or has a name that means something to a shell', () => {
    const disk = machine.disk(400)
    execFileSync('mknod', [join(machine.root, 'loop'), 'b', '7', '0'])
    for (const device of [
      ...['/dev/null', '/dev/nothing', '/etc/fstab', '/', 'loop0', '/dev/../dev/null'],
      ...[join(machine.root, 'loop'), "'/dev/loop0;touch x'", "'/dev/$(id)'", "'/dev/loop0\n/dev/loop1'"],
      ...["'/dev/disk/by-id/a b'", '-f'],
    ]) {
      const { status, stderr } = machine.prepare({ device })
      expect([device, status, stderr]).toEqual([device, 3, expect.stringMatching(/^ERROR: {2}".*" /)])
    }
    expect(machine.prepare(disk, '--device', disk.device).stderr).toContain('is given twice')
    expect(machine.has('etc/floe')).toBe(false)
  })
})

describe.skipIf(why !== null)(`a place that is taken, or strange${here}`, () => {
  const refused = (disk: { device: string }, reason: string, ...more: string[]) => {
    const { status, stderr } = machine.prepare(disk, ...more)
    expect([status, stderr]).toEqual([3, expect.stringContaining(reason)])
    expect(machine.has('etc/floe')).toBe(false)
  }

  test('files at the mount point, a link, a mount of somebody else', () => {
    const disk = machine.disk(400)
    machine.put('data/file', 'x')
    refused(disk, 'holds files')
    symlinkSync('/etc', join(machine.root, 'link'))
    refused(disk, 'is a symbolic link', '--mount', join(machine.root, 'link'))
    machine.put('etc/fstab', `/dev/sdb1 ${machine.root}/other ext4 defaults 0 2\n`)
    refused(disk, 'mounts something else', '--mount', join(machine.root, 'other'))
    refused(disk, 'something is mounted at /etc already', '--mount', '/etc')
  })

  test('names that fstab or a shell would read otherwise', () => {
    const disk = machine.disk(400)
    for (const place of ['relative', '/', '/a/../b', '//a', '/a/', "'/a b'", "'/a\n/b'", "'/a$(id)'"])
      refused(disk, 'cannot be a mount point', '--mount', place)
  })

  test('a state that it did not write, or that is damaged', () => {
    const disk = machine.disk(400)
    machine.put('etc/floe/host-prepare.state', 'phase formatting\n')
    expect(machine.prepare(disk)).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('was not written'),
    })
    machine.inside(`rm -r /etc/floe; $prepare ${machine.words(disk)}`)
    const good = machine.read('etc/floe/host-prepare.state')
    for (const [from, to] of [
      [/^uuid .*/m, 'uuid x'],
      [/^phase .*/m, 'phase none'],
      [/^target .*/m, 'target /dev/../etc/x y'],
    ] as [RegExp, string][]) {
      machine.put('etc/floe/host-prepare.state', good.replace(from, to))
      expect(machine.prepare(disk)).toMatchObject({
        status: 3,
        stderr: expect.stringContaining('is damaged'),
      })
    }
  })

  test('another run at the same time', () => {
    const disk = machine.disk(400)
    const { status, stderr } = machine.inside(
      `flock /run/floe-host-prepare.lock $prepare ${machine.words(disk)}`,
    )
    expect([status, stderr]).toEqual([3, expect.stringContaining('running already')])
  })

  test('a file system that is gone is not made again', () => {
    const disk = machine.disk(400)
    expect(machine.prepare(disk).status).toBe(0)
    execFileSync('wipefs', ['--all', '--quiet', disk.device])
    const before = machine.fingerprint(disk)
    expect(machine.prepare(disk)).toMatchObject({ status: 3, stderr: expect.stringContaining('is gone') })
    expect(machine.fingerprint(disk)).toBe(before)
  })
})

describe.skipIf(why !== null)(`killed in the middle and run again${here}`, () => {
  /** Lies over a program for one run: a shell script that ends by killing whoever started it. */
  const killing = (program: string, script: string) => {
    const path = execFileSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim()
    machine.put('real', '')
    writeFileSync(
      join(machine.root, 'killing'),
      `#!/bin/sh\nreal=${machine.root}/real\n${script}\nkill -9 $PPID\n`,
      { mode: 0o755 },
    )
    return `mount --bind "$(readlink -f ${path})" ${machine.root}/real; mount --bind ${machine.root}/killing "$(readlink -f ${path})"`
  }
  const strace = spawnSync('which', ['strace']).status === 0
  const half = (write: number) =>
    `strace -o /dev/null -e trace=pwrite64 -e inject=pwrite64:signal=KILL:when=${write} "$real" "$@"`

  test.each([
    ['before a byte was written', 'mkfs.xfs', '', true],
    ['once the former signatures were removed', 'mkfs.xfs', half(2), strace],
    ['in the first superblock and group', 'mkfs.xfs', half(7), strace],
    ['late in mkfs', 'mkfs.xfs', half(40), strace],
    ['after mkfs, before that is known', 'mkfs.xfs', '"$real" "$@"', true],
    ['with fstab written, before the mount', 'chattr', '', true],
  ] as const)('%s', (_, program, script, possible) => {
    if (!possible) return
    const disk = machine.disk(400)
    const killed = machine.inside(`${killing(program, script)}\n$prepare ${machine.words(disk)}`)
    expect([killed.status, killed.stdout]).not.toEqual([0, expect.stringContaining('Done')])
    expect(machine.has('etc/floe/host-prepare.state')).toBe(true)
    const again = machine.inside(
      `$prepare ${machine.words(disk)} && touch ${machine.mount}/x && $prepare ${machine.words(disk)}`,
    )
    expect([again.status, again.stderr]).toEqual([0, ''])
    expect(again.stdout).toMatch(/Nothing to change/)
    expect(spawnSync('xfs_repair', ['-n', disk.device]).status).toBe(0)
    expect(machine.read('etc/fstab').match(/UUID=/g)).toHaveLength(1)
    expect(machine.read('etc/fstab')).toContain(`UUID=${uuidOf()} `)
  })

  test('a file system of its own that was finished and cannot be mounted is not made again', () => {
    const disk = machine.disk(400)
    machine.inside(`${killing('mkfs.xfs', '"$real" "$@"')}\n$prepare ${machine.words(disk)}`)
    // somebody mounted it by hand, and then its superblock was damaged
    const used = machine.inside(
      `mkdir /run/m; mount ${disk.device} /run/m && echo precious >/run/m/file && umount /run/m`,
    )
    expect(used.status).toBe(0)
    execFileSync('blockdev', ['--flushbufs', disk.device])
    write(disk.file, 110, '!')
    execFileSync('blockdev', ['--flushbufs', disk.device])
    const before = machine.fingerprint(disk)
    expect(machine.prepare(disk)).toMatchObject({
      status: 3,
      stderr: expect.stringMatching(/cannot be mounted|holds data/),
    })
    expect(machine.fingerprint(disk)).toBe(before)
  })

  test('what somebody else put on the disk meanwhile stays', () => {
    const disk = machine.disk(400)
    machine.inside(`${killing('mkfs.xfs', '')}\n$prepare ${machine.words(disk)}`)
    execFileSync('mkfs.xfs', ['-q', disk.device])
    const before = machine.fingerprint(disk)
    expect(machine.prepare(disk)).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('holds data: xfs'),
    })
    expect(machine.fingerprint(disk)).toBe(before)
  })
})

describe.skipIf(why !== null)(`NVMe disks are found by themselves${here}`, () => {
  /** Shows loop devices as local NVMe disks of strange models. */
  const asNvme = (models: Record<string, string>, transport = 'pcie') =>
    `set -e; mount -t tmpfs none /dev; mknod /dev/null c 1 3; mknod /dev/zero c 1 5
     ${machine.nvme(models, { transport }).nodes}; mount --bind ${machine.root}/block /sys/block; set +e`
  const words = () => `--no-settings --min-size 300 --mount ${machine.mount} --confirm ${machine.name}`

  test('the one that is empty and of the model asked for', () => {
    const { status, stdout, stderr } = machine.inside(
      `${asNvme({ nvme0n1: 'Amazon Elastic Block Store', nvme1n1: 'Amazon EC2 NVMe Instance Storage' })}
       $prepare ${words()} --model '*Instance Storage'`,
    )
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/passed over: \/dev\/nvme0n1 \(400 MB.*not of the model/)
    expect(stdout).toContain('disk: /dev/nvme1n1 (400 MB, model Amazon EC2 NVMe Instance Storage')
  })

  test('of several none is taken unless it is said what they become', () => {
    const shown = asNvme({ nvme0n1: 'a', nvme1n1: 'b' })
    const { status, stderr } = machine.inside(`${shown}\n$prepare ${words()}`)
    expect([status, stderr]).toEqual([3, expect.stringContaining('there are 2 empty disks')])
    expect(machine.has('etc/floe')).toBe(false)
  })

  test('what is not in this machine is passed over, and what a disk calls itself is shown as it may be', () => {
    const { status, stdout, stderr } = machine.inside(
      `${asNvme({ nvme0n1: '$(touch /etc/x)\u001b[31m%s' }, 'tcp')}\n$prepare ${words()}`,
    )
    expect([status, stderr]).toEqual([3, expect.stringContaining('no empty local NVMe disk')])
    expect(stdout).toContain(
      'model $(touch /etc/x)?[31m%s, serial S1): it is not known to be in this machine',
    )
    expect(machine.has('etc/x')).toBe(false)
  })
})

test('wrong use is told apart from a refusal', () => {
  for (const words of [
    '--layout raid5',
    '--min-size 1',
    '--min-size x',
    '--mount',
    '--nothing',
    '--confirm ""',
  ])
    expect(machine.inside(`$prepare ${words}`).status, words).toBe(process.getuid?.() === 0 ? 2 : 1)
})
