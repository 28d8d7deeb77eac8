import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const preparation = join(import.meta.dirname, '../../../infra/host-prepare/floe-host-prepare')

export const MEGABYTE = 1_048_576

/** Why no disk can be prepared here; null where one can. */
export function whyNoDisks(): string | null {
  if (process.getuid?.() !== 0) return 'needs root: loop devices, mounts'
  for (const program of ['losetup', 'unshare', 'wipefs', 'blkid', 'mkfs.xfs', 'xfs_repair'])
    if (spawnSync('which', [program]).status !== 0) return `needs ${program}`
  const machine = new MachineOfLoops()
  try {
    const disk = machine.disk(400)
    const { status, stderr } = machine.inside(
      `mkfs.xfs -q ${disk.device}; mkdir /run/m; mount ${disk.device} /run/m`,
    )
    return status === 0 ? null : `needs XFS on loop devices: ${stderr.trim().split('\n').at(-1)}`
  } catch (error) {
    return `needs loop devices: ${String(error).split('\n')[0]}`
  } finally {
    machine.end()
  }
}

type Disk = { device: string; file: string }

/**
 * A machine with disks that are loop devices. Whatever is run in it has a mount namespace to itself, with an /etc and a /run
 * of the machine; the end of a run is its restart: mounts are gone, files stay.
 */
export class MachineOfLoops {
  readonly root = mkdtempSync(join(tmpdir(), 'floe-loops-'))
  readonly mount = join(this.root, 'data')
  readonly name = execFileSync('uname', ['-n'], { encoding: 'utf8' }).trim()
  #devices: string[] = []

  constructor() {
    for (const name of ['etc', 'run']) mkdirSync(join(this.root, name))
    this.put('etc/fstab', '# of the system\n')
    // awk is one of several
    if (existsSync('/etc/alternatives'))
      execFileSync('cp', ['-a', '/etc/alternatives', join(this.root, 'etc')])
  }

  put(path: string, text: string) {
    mkdirSync(dirname(join(this.root, path)), { recursive: true })
    writeFileSync(join(this.root, path), text)
  }
  read = (path: string) => readFileSync(join(this.root, path), 'utf8')
  has = (path: string) => existsSync(join(this.root, path))

  disk(megabytes: number, ...options: string[]): Disk {
    const file = join(this.root, `disk${this.#devices.length}`)
    writeFileSync(file, '')
    truncateSync(file, megabytes * MEGABYTE)
    return { file, device: this.attach(file, ...options) }
  }
  attach(file: string, ...options: string[]): string {
    const device = execFileSync('losetup', ['--find', '--show', ...options, file], {
      encoding: 'utf8',
    }).trim()
    this.#devices.push(device)
    return device
  }

  /** Loop devices that can be shown as NVMe disks of these models: what /sys/block is to hold, and lines that make their nodes. */
  nvme(models: Record<string, string>, o: { transport?: string; megabytes?: number } = {}) {
    const { transport = 'pcie', megabytes = 400 } = o
    const disks: Disk[] = []
    const nodes: string[] = []
    for (const [name, model] of Object.entries(models)) {
      const disk = this.disk(megabytes)
      disks.push(disk)
      const loop = disk.device.replace('/dev/', '')
      const number = readFileSync(`/sys/block/${loop}/dev`, 'utf8').trim()
      for (const [file, text] of Object.entries({
        ...{ dev: number, ro: '0', size: String(megabytes * 2048) },
        ...{ 'device/model': model, 'device/serial': 'S1', 'device/transport': transport },
      }))
        this.put(`block/${name}/${file}`, `${text}\n`)
      for (const node of [name, loop]) nodes.push(`mknod /dev/${node} b ${number.replace(':', ' ')}`)
    }
    return { disks, nodes: nodes.join('; ') }
  }

  /** What is on a disk and where it has holes, which are not read: an image is hardly ever written. */
  fingerprint({ file, device }: Disk): string {
    execFileSync('blockdev', ['--flushbufs', device])
    const image = execFileSync('tar', ['--create', '--sparse', '--mtime=@0', '--file=-', '-P', file], {
      maxBuffer: 512 * MEGABYTE,
    })
    return createHash('sha256').update(image).digest('hex')
  }

  /** Runs a shell script in the machine; `$prepare` in it is the program. */
  inside(script: string, input = '') {
    const bind = ['etc', 'run'].map((name) => `mount --bind ${join(this.root, name)} /${name}`).join('; ')
    return spawnSync(
      'unshare',
      ['--mount', '--propagation', 'private', 'sh', '-c', `set -e; ${bind}; set +e\n${script}`],
      { encoding: 'utf8', input, timeout: 120_000, env: { ...process.env, prepare: preparation } },
    )
  }

  /** The words that prepare a disk here without a question; settings of the kernel are those of the real machine. */
  words = (disk: { device: string }, ...more: string[]) =>
    [
      ...['--no-settings', '--min-size', '300', '--mount', this.mount, '--device', disk.device],
      ...['--confirm', this.name, ...more],
    ].join(' ')
  prepare = (disk: { device: string }, ...more: string[]) =>
    this.inside(`$prepare ${this.words(disk, ...more)}`)

  end() {
    for (const device of this.#devices) spawnSync('losetup', ['--detach', device])
    if (existsSync(this.mount)) spawnSync('chattr', ['-i', this.mount])
    rmSync(this.root, { recursive: true, force: true })
  }
}
