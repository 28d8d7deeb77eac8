import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/**
 * Several hosts on one machine, for real: each has a network namespace of its own with an address of its own, and all hang
 * on one bridge, on which the test itself (the console) is reached too. A partition takes packets away without a word, as
 * a broken switch does. Needs root. Names and addresses are private to the run; `remove()` takes everything away, and so
 * does the end of the process. What a killed run left is removed by the next one.
 */
export class ThrowawayNetwork {
  /** Where hosts reach the test. */
  readonly consoleAddress: string
  readonly #id: string
  readonly #bridge: string
  readonly #subnet: string
  readonly #hosts: NetworkHost[] = []
  readonly #onExit = () => this.remove()
  #removed = false

  private constructor() {
    networks++
    const pid = process.pid.toString(36)
    this.#id = `${pid}-${networks}`
    this.#bridge = `fl${pid}b${networks}`
    this.#subnet = freeSubnet()
    this.consoleAddress = `${this.#subnet}.1`
    ip('link', 'add', this.#bridge, 'type', 'bridge')
    process.once('exit', this.#onExit)
    ip('addr', 'add', `${this.consoleAddress}/24`, 'dev', this.#bridge)
    ip('link', 'set', this.#bridge, 'up')
  }

  /** Why there can be no such network here; null where there can. */
  static missing(): string | null {
    if (process.getuid?.() !== 0) return 'network namespaces need root'
    try {
      ip('netns', 'list')
      return null
    } catch {
      return 'network namespaces need the command "ip" (package iproute2)'
    }
  }

  static create(): ThrowawayNetwork {
    const missing = ThrowawayNetwork.missing()
    if (missing) throw new Error(missing)
    removeLeftovers()
    return new ThrowawayNetwork()
  }

  addHost(): NetworkHost {
    const n = this.#hosts.length + 1
    const namespace = `floe-${this.#id}-h${n}`
    const outside = `${this.#bridge}h${n}`
    const address = `${this.#subnet}.${n + 1}`
    ip('netns', 'add', namespace)
    const host: NetworkHost = { namespace, address, outside, command: ['ip', 'netns', 'exec', namespace] }
    this.#hosts.push(host)
    ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace)
    ip('link', 'set', outside, 'master', this.#bridge, 'up')
    for (const [device, own] of [
      ['lo', '127.0.0.1/8'],
      ['eth0', `${address}/24`],
    ] as const) {
      if (device !== 'lo') ip('-n', namespace, 'addr', 'add', own, 'dev', device)
      ip('-n', namespace, 'link', 'set', device, 'up')
    }
    return host
  }

  /**
   * Cuts a host off from everything, or only from some others (`'console'` is the test itself). Nobody is told: packets
   * just do not arrive, in either direction.
   */
  partition(host: NetworkHost, from?: readonly (NetworkHost | 'console')[]): void {
    if (from === undefined) ip('link', 'set', host.outside, 'down')
    else
      for (const other of from) {
        this.#lose(host, other)
        this.#lose(other, host)
      }
  }

  /** Joins a host with everything again. */
  heal(host: NetworkHost): void {
    ip('link', 'set', host.outside, 'up')
    for (const other of ['console' as const, ...this.#hosts.filter((h) => h !== host)]) {
      this.#find(host, other)
      this.#find(other, host)
    }
  }

  /**
   * Makes every packet to and from a host take this much longer, in ms; 0 ends that. False where the kernel has no network
   * emulation (module sch_netem): nothing is slower then.
   */
  slow(host: NetworkHost, delayMs: number): boolean {
    const tc = (...args: string[]) => execFileSync('tc', args, { stdio: 'ignore' })
    try {
      tc('qdisc', 'replace', 'dev', host.outside, 'root', 'netem', 'delay', `${delayMs}ms`)
      if (delayMs === 0) tc('qdisc', 'del', 'dev', host.outside, 'root')
      return true
    } catch {
      return false
    }
  }

  /** Takes the network away; processes of it should have ended before. */
  remove(): void {
    if (this.#removed) return
    this.#removed = true
    process.off('exit', this.#onExit)
    for (const host of this.#hosts) quietly(() => ip('netns', 'del', host.namespace))
    quietly(() => ip('link', 'del', this.#bridge))
  }

  /** A wrong hardware address for the other: what is sent to it reaches nobody. */
  #lose(one: NetworkHost | 'console', other: NetworkHost | 'console'): void {
    const entry = ['lladdr', '02:00:00:00:00:01', 'dev', this.#deviceOf(one), 'nud', 'permanent']
    ip(...this.#in(one), 'neigh', 'replace', this.#addressOf(other), ...entry)
  }

  #find(one: NetworkHost | 'console', other: NetworkHost | 'console'): void {
    quietly(() => ip(...this.#in(one), 'neigh', 'del', this.#addressOf(other), 'dev', this.#deviceOf(one)))
  }

  #in(host: NetworkHost | 'console'): string[] {
    return host === 'console' ? [] : ['-n', host.namespace]
  }

  #deviceOf(host: NetworkHost | 'console'): string {
    return host === 'console' ? this.#bridge : 'eth0'
  }

  #addressOf(host: NetworkHost | 'console'): string {
    return host === 'console' ? this.consoleAddress : host.address
  }
}

export type NetworkHost = {
  namespace: string
  address: string
  /** Its device on the bridge. */
  outside: string
  /** What a command is put behind to run on that host. */
  command: readonly string[]
}

let networks = 0

function ip(...args: string[]): string {
  return execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

function quietly(act: () => void): void {
  try {
    act()
  } catch {
    // it is not there, which is what is wanted
  }
}

/** A network of 254 addresses that nobody here uses, out of the range that is set apart for tests of networks. */
function freeSubnet(): string {
  const used = ip('-o', 'addr')
  for (let attempt = 0; attempt < 200; attempt++) {
    const subnet = `198.${18 + Math.floor(Math.random() * 2)}.${Math.floor(Math.random() * 256)}`
    if (!used.includes(` ${subnet}.`)) return subnet
  }
  throw new Error('no free network between 198.18.0.0 and 198.19.255.0')
}

/** What runs left that were killed: their names hold the process they belonged to. */
function removeLeftovers(): void {
  const dead = (pid: string | undefined) =>
    pid !== undefined && !existsSync(`/proc/${Number.parseInt(pid, 36)}`)
  for (const line of ip('netns', 'list').split('\n')) {
    const name = line.split(' ')[0] ?? ''
    if (dead(/^floe-([0-9a-z]+)-\d+-h\d+$/.exec(name)?.[1])) quietly(() => ip('netns', 'del', name))
  }
  for (const line of ip('-o', 'link', 'show', 'type', 'bridge').split('\n')) {
    const name = /^\d+: ([^:@]+)/.exec(line)?.[1] ?? ''
    if (dead(/^fl([0-9a-z]+)b\d+$/.exec(name)?.[1])) quietly(() => ip('link', 'del', name))
  }
}
