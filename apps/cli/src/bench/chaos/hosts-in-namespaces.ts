import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fault } from '@floe/domain'
import { removeUsersOf } from './users-of-a-home'

/** Packets that a host loses without a word. `percent` of them, all where it is left out. */
export type Loss = { of: string; direction: 'in' | 'out'; percent?: number }

/** Names and directories of a run begin so; the id of its process follows. */
const PREFIX = 'fchaos'
const DIRECTORY = 'floe-chaos-'
const FILLING = '.filling'
/** Sparse: what is not written takes no space. `./floe up` wants 3 GB. */
const DISK_BYTES = 6 * 1024 ** 3
const END_MS = 10_000

const wait = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

function run(file: string, args: string[], input?: string): string {
  const r = spawnSync(file, args, { encoding: 'utf8', input, timeout: 30_000 })
  if (r.status === 0) return r.stdout
  throw fault('chaos.command_failed', `"${[file, ...args].join(' ')}" failed`, {
    detail: r.error?.message ?? (r.stderr.trim() || `It ended with ${r.status ?? r.signal}.`),
  })
}

function quietly(act: () => void): void {
  try {
    act()
  } catch {
    // it is not there, which is what is wanted
  }
}

const namespaceFile = (namespace: string) => `/run/netns/${namespace}`

/** Processes whose network is that namespace: all that runs on the host. */
function pidsIn(namespace: string): number[] {
  let network: string
  try {
    network = `net:[${statSync(namespaceFile(namespace)).ino}]`
  } catch {
    return []
  }
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      return readlinkSync(`/proc/${name}/ns/net`) === network ? [Number(name)] : []
    } catch {
      return []
    }
  })
}

/** The rules by which a host loses packets, in nft's words; what is not named goes through. */
export function rulesFor(losses: readonly Loss[]): string {
  const chain = (direction: Loss['direction']) => [
    `  chain ${direction} {`,
    `    type filter hook ${direction}put priority 0; policy accept;`,
    ...losses
      .filter((l) => l.direction === direction)
      .map((l) => {
        const address = `ip ${direction === 'in' ? 'saddr' : 'daddr'} ${l.of}`
        return `    ${address} ${l.percent === undefined ? '' : `numgen random mod 100 < ${l.percent} `}drop`
      }),
    '  }',
  ]
  const table = ['table ip chaos {', ...chain('in'), ...chain('out'), '}']
  // deleting needs one that is there
  return ['table ip chaos {', '}', 'delete table ip chaos', ...table, ''].join('\n')
}

/** A host of its own: a network namespace with one address, and a disk of its own where it was asked for. */
export class NamespaceHost {
  readonly name: string
  readonly namespace: string
  readonly address: string
  /** FLOE_HOME on this host; where it has a disk of its own, that is mounted here. */
  readonly home: string
  readonly hasDisk: boolean

  constructor(name: string, namespace: string, address: string, home: string, hasDisk: boolean) {
    this.name = name
    this.namespace = namespace
    this.address = address
    this.home = home
    this.hasDisk = hasDisk
  }

  /** What a command is put behind to run on this host. */
  get command(): string[] {
    return ['nsenter', `--net=${namespaceFile(this.namespace)}`]
  }

  start(words: string[], options: SpawnOptions = {}): ChildProcess {
    const [file, ...args] = [...this.command, ...words]
    return spawn(file as string, args, options)
  }

  pids(): number[] {
    return pidsIn(this.namespace)
  }

  /** Processes of this host that run the program of this name. */
  pidsOf(program: string): number[] {
    return this.pids().filter((pid) => {
      try {
        return basename(readlinkSync(`/proc/${pid}/exe`)) === program
      } catch {
        return false
      }
    })
  }

  /** Those of one of Floe's own programs. */
  pidsOfApp(app: 'agent' | 'controller'): number[] {
    return this.pids().filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`/apps/${app}/dist/`)
      } catch {
        return false
      }
    })
  }

  signal(signal: NodeJS.Signals, pids = this.pids()): number {
    let sent = 0
    for (const pid of pids)
      try {
        process.kill(pid, signal)
        sent++
      } catch {
        // it ended meanwhile
      }
    return sent
  }

  /** Stops every process, again until none was added meanwhile; `resume` ends it. */
  pause(): void {
    for (let before = -1, now = 0; now !== before; ) {
      before = now
      now = this.signal('SIGSTOP')
    }
  }

  resume(): void {
    this.signal('SIGCONT')
  }

  /** Ends every process at once, as a loss of power does. */
  powerOff(): void {
    const end = Date.now() + END_MS
    for (;;) {
      if (this.signal('SIGKILL') === 0) return
      if (Date.now() > end)
        throw fault('chaos.processes_left', `processes of host "${this.name}" do not end`, {
          detail: `They are ${this.pids().join(', ')}.`,
        })
      wait(50)
    }
  }

  lose(losses: readonly Loss[]): void {
    run('nsenter', [`--net=${namespaceFile(this.namespace)}`, 'nft', '-f', '-'], rulesFor(losses))
  }

  /** Takes every free byte of its disk. */
  fillDisk(): void {
    const { bavail, bsize } = statfsSync(this.home)
    const file = join(this.home, FILLING)
    quietly(() => run('fallocate', ['-l', String(bavail * bsize), file]))
    // what fallocate left, in smaller pieces
    for (const bytes of [16 << 20, 1 << 20, 1 << 16, 1 << 12])
      for (let n = 0; n < 64; n++)
        try {
          writeFileSync(`${file}.${bytes}.${n}`, Buffer.alloc(bytes))
        } catch {
          break
        }
  }

  emptyDisk(): void {
    for (const name of readdirSync(this.home)) if (name.startsWith(FILLING)) rmSync(join(this.home, name))
  }

  /** Lets every write to its disk wait, also for SIGKILL, until `thaw`. */
  freeze(): void {
    run('fsfreeze', ['-f', this.home])
  }

  thaw(): void {
    quietly(() => run('fsfreeze', ['-u', this.home]))
  }
}

/**
 * Hosts on this machine, as real as namespaces make them: each with a network of its own, on a bridge that has a namespace
 * of its own too, so that no rule of the machine's bears on it. Names and directories are private to the run. `remove()`
 * ends every process in those namespaces and takes all away; the end of this process does so too. What a killed run left is
 * removed by the next one.
 */
export class HostsInNamespaces {
  readonly directory: string
  readonly hosts: NamespaceHost[] = []
  readonly #id = `${PREFIX}-${process.pid}`
  readonly #subnet: string
  #ports = 0
  readonly #onExit = () => this.remove()
  #removed = false

  /** What this machine lacks, in words, with what to do about it; empty where nothing. */
  static missing(): string[] {
    if (process.getuid?.() !== 0) return ['root (namespaces, mounts and signals to other users need it)']
    const programs = { ip: 'iproute2', nft: 'nftables', nsenter: 'util-linux', fsfreeze: 'util-linux' }
    return [
      ...Object.entries({ ...programs, 'mkfs.ext4': 'e2fsprogs', losetup: 'mount' })
        .filter(([program]) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0)
        .map(([program, of]) => `the program "${program}" (package ${of})`),
      ...(existsSync('/dev/loop-control') ? [] : ['loop devices (/dev/loop-control)']),
    ]
  }

  constructor() {
    const missing = HostsInNamespaces.missing()
    if (missing.length > 0)
      throw fault('chaos.missing', 'hosts of their own cannot be made on this machine', {
        detail: `Missing: ${missing.join('; ')}.`,
        hint: 'Run it as root, with the packages iproute2, nftables, util-linux, mount and e2fsprogs.',
      })
    removeLeftovers()
    // 198.18.0.0/15 is set apart for tests of networks; each run has namespaces of its own, so none is in the way of another
    this.#subnet = '198.18.0'
    this.directory = mkdtempSync(join(tmpdir(), `${DIRECTORY}${process.pid}-`))
    // users of engines must get in
    chmodSync(this.directory, 0o755)
    process.once('exit', this.#onExit)
    run('ip', ['netns', 'add', this.#switch])
    run('ip', ['-n', this.#switch, 'link', 'add', 'bridge', 'type', 'bridge'])
    run('ip', ['-n', this.#switch, 'link', 'set', 'bridge', 'up'])
  }

  get #switch(): string {
    return `${this.#id}-switch`
  }

  add(name: string, { disk = false }: { disk?: boolean } = {}): NamespaceHost {
    const n = ++this.#ports
    const namespace = `${this.#id}-${name}`
    const address = `${this.#subnet}.${n}`
    const home = join(this.directory, name)
    const host = new NamespaceHost(name, namespace, address, home, disk)
    mkdirSync(home, { mode: 0o755 })
    run('ip', ['netns', 'add', namespace])
    this.hosts.push(host)
    const port = `port${n}`
    const ends = ['type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace]
    run('ip', ['-n', this.#switch, 'link', 'add', port, ...ends])
    run('ip', ['-n', this.#switch, 'link', 'set', port, 'master', 'bridge', 'up'])
    run('ip', ['-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0'])
    for (const device of ['lo', 'eth0']) run('ip', ['-n', namespace, 'link', 'set', device, 'up'])
    if (disk) {
      const image = `${home}.disk`
      writeFileSync(image, '')
      truncateSync(image, DISK_BYTES)
      run('mkfs.ext4', ['-q', '-m', '0', '-E', 'lazy_itable_init=1,nodiscard', image])
      run('mount', ['-o', 'loop,noatime', image, home])
      chmodSync(home, 0o755)
    }
    return host
  }

  /** A port of the bridge for a machine of QEMU that is run behind the command, and the address that is the machine's. */
  addMachine(): { command: string[]; tap: string; address: string } {
    const n = ++this.#ports
    const tap = `port${n}`
    run('ip', ['-n', this.#switch, 'tuntap', 'add', tap, 'mode', 'tap'])
    run('ip', ['-n', this.#switch, 'link', 'set', tap, 'master', 'bridge', 'up'])
    const command = ['nsenter', `--net=${namespaceFile(this.#switch)}`]
    return { command, tap, address: `${this.#subnet}.${n}` }
  }

  remove(): void {
    if (this.#removed) return
    this.#removed = true
    process.off('exit', this.#onExit)
    removeRun(process.pid, this.directory)
  }
}

const namespaces = () =>
  run('ip', ['netns', 'list'])
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '')
    .filter((name) => name.startsWith(`${PREFIX}-`))

const mountsBelow = (directory: string) =>
  readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((mount) => mount.startsWith(`${directory}/`))

/** Takes away what the run of that process made, and nothing else: its namespaces, what runs in them, its directory. */
function removeRun(pid: number, directory: string): void {
  const own = namespaces().filter((name) => name.startsWith(`${PREFIX}-${pid}-`))
  const thaw = () => {
    for (const mount of mountsBelow(directory)) spawnSync('fsfreeze', ['-u', mount], { timeout: 10_000 })
  }
  // nothing that waits for a frozen disk can be ended
  thaw()
  const end = Date.now() + END_MS
  for (;;) {
    const left = own.flatMap(pidsIn)
    if (left.length === 0 || Date.now() > end) break
    for (const one of left) quietly(() => process.kill(one, 'SIGKILL'))
    wait(50)
    // what slows a disk down may have frozen it once more
    thaw()
  }
  for (const name of own) quietly(() => run('ip', ['netns', 'del', name]))
  // read before the disks are gone
  const homes = existsSync(directory)
    ? readdirSync(directory).flatMap((name) =>
        statSync(join(directory, name)).isDirectory() ? [join(directory, name)] : [],
      )
    : []
  quietly(() => removeUsersOf(homes))
  for (const mount of mountsBelow(directory)) {
    for (let tries = 0; tries < 50 && spawnSync('umount', [mount]).status !== 0; tries++) wait(100)
  }
  if (mountsBelow(directory).length === 0) rmSync(directory, { recursive: true, force: true })
  else process.stderr.write(`floe: "${directory}" is still in use and is left; the next run removes it\n`)
}

/** What runs left that were killed: names and directories hold the process they belonged to. */
function removeLeftovers(): void {
  const gone = (pid: number) => !existsSync(`/proc/${pid}`)
  const pids = new Map<number, string>()
  for (const name of namespaces()) {
    const pid = Number(new RegExp(`^${PREFIX}-(\\d+)-`).exec(name)?.[1])
    if (pid) pids.set(pid, '/nonexistent')
  }
  for (const name of readdirSync(tmpdir())) {
    const pid = Number(new RegExp(`^${DIRECTORY}(\\d+)-`).exec(name)?.[1])
    if (pid) pids.set(pid, join(tmpdir(), name))
  }
  for (const [pid, directory] of pids) if (gone(pid)) removeRun(pid, directory)
}
