import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { emptyDisk, guest, here, runGuest } from './guest/machine'

// below 1 GB together mkfs.xfs leaves stripes out
const SIZE = 768

/** A real machine, of QEMU: real NVMe disks as its kernel sees them, real restarts. */
describe.skipIf(guest === '')(`in a guest${here}`, { timeout: 1_200_000 }, () => {
  let room: string
  beforeEach(() => {
    room = mkdtempSync(join(tmpdir(), 'floe-guest-'))
    mkdirSync(join(room, 'etc'))
    writeFileSync(join(room, 'etc/fstab'), '')
    mkdirSync(join(room, 'etc/lvm'))
    // there is no udev, which makes these devices elsewhere
    writeFileSync(join(room, 'etc/lvm/lvm.conf'), 'activation { udev_sync = 0 udev_rules = 0 }')
  })
  afterEach(() => rmSync(room, { recursive: true, force: true }))

  const disk = (name: string) => emptyDisk(join(room, name), SIZE)
  /** Makes the disk that is /etc, as it is at the first start. */
  function state(run: string) {
    writeFileSync(join(room, 'etc/run'), run)
    execFileSync('mkfs.ext4', ['-q', '-L', 'floe-state', '-d', join(room, 'etc'), join(room, 'state'), '16M'])
  }

  /** Starts the machine with these disks in this order, and answers what its console said. */
  async function start(...disks: string[]): Promise<string> {
    const { status, said } = await runGuest({
      memoryMegabytes: 1_024,
      append: `floe_disks=${disks.length}`,
      arguments: ['-initrd', join(guest, 'initramfs')],
      disks: disks.map((serial) => ({ serial, path: join(room, serial) })),
      boundMs: 500_000,
    })
    expect([status, said]).toEqual([0, expect.stringMatching(/^it ended with \d+$/m)])
    return said
  }
  const prepare = '/floe/host-prepare/floe-host-prepare --min-size 300 --confirm db1'

  test('the empty disk is found by itself, and mounted again when disks have other names', async () => {
    for (const name of ['empty', 'full']) disk(name)
    execFileSync('mkfs.ext4', ['-q', join(room, 'full')])
    const full = execFileSync('sha256sum', [join(room, 'full')], { encoding: 'utf8' })
    state(`${prepare} && { [ -e /var/lib/floe/file ] && cat /var/lib/floe/file || echo kept >/var/lib/floe/file; }
      grep ' /var/lib/floe ' /proc/self/mountinfo
      cat /sys/block/nvme*/queue/scheduler /proc/sys/vm/swappiness
      ${prepare}; echo "again $?"
      touch /var/lib/floe/x; umount /var/lib/floe; touch /var/lib/floe/y || echo 'nothing is written below it'`)
    const first = await start('state', 'empty', 'full')
    expect(first).toMatch(/^disk: \/dev\/nvme1n1 \(768 MB, model QEMU NVMe Ctrl, serial empty\) is empty$/m)
    expect(first).toMatch(/^passed over: \/dev\/nvme2n1 .*serial full\): it holds data: ext4$/m)
    expect(first).toMatch(/^passed over: \/dev\/nvme0n1 .*serial state\): it is smaller than 300 MB/m)
    expect(first).toMatch(/ \/var\/lib\/floe \S*noatime.* - xfs /)
    expect(first).toMatch(/^\[none\] /m)
    expect(first).toMatch(/^1$/m)
    expect(first).toContain('Nothing to change')
    expect(first).toContain('again 0')
    expect(first).toContain('nothing is written below it')
    const second = await start('full', 'empty', 'state')
    expect(second).toMatch(/^kept$/m)
    expect(second).not.toContain('make:')
    expect(execFileSync('sha256sum', [join(room, 'full')], { encoding: 'utf8' })).toBe(full)
  })

  test.each([
    ['raid0', 'mdadm --assemble --scan', /mdadm/],
    ['lvm', 'vgchange -q -ay', /floe-\w{8}/],
  ] as const)(
    'two disks become one by %s, and are that again after a restart',
    async (layout, assemble, made) => {
      for (const name of ['one', 'two']) disk(name)
      state(`[ ! -e /etc/floe/host-prepare.state ] || ${assemble}
      ${prepare} --layout ${layout} && { [ -e /var/lib/floe/file ] && cat /var/lib/floe/file || echo kept >/var/lib/floe/file; }
      grep ' /var/lib/floe ' /proc/self/mountinfo
      df -m /var/lib/floe
      ${prepare} --layout ${layout}; echo "again $?"`)
      const first = await start('state', 'one', 'two')
      expect(first).toMatch(new RegExp(`^make: /dev/.* of these, striped \\(${layout}\\)$`, 'm'))
      expect(first).toMatch(made)
      expect(first).toMatch(/ \/var\/lib\/floe .* - xfs .*swidth=/)
      // nearly both
      expect(Number(/^\S+ +(\d+) .* \/var\/lib\/floe$/m.exec(first)?.[1])).toBeGreaterThan(1_400)
      expect(first).toContain('again 0')
      const second = await start('two', 'state', 'one')
      expect(second).toMatch(/^kept$/m)
      expect(second).not.toContain('make:')
      expect(second).toContain('again 0')
    },
  )
})
