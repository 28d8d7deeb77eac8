import { dirname } from 'node:path'
import { fault } from '@floe/domain'
import {
  directoryOf,
  groupsOf,
  ioUse,
  numberIn,
  numbersOf,
  parseGroupMounts,
  parseOwnGroups,
  readGroupFile,
  throttledUse,
} from '@floe/host/control-groups'
import { readLongKernelFile } from '@floe/host/kernel-file'
import type { LoopDevice } from './loop-device'

/** What the kernel counts of an instance, by the groups of its postmaster; their files are root's. */
export class Counted {
  readonly #postmasterPid: number

  constructor(postmasterPid: number) {
    this.#postmasterPid = postmasterPid
  }

  /** The group that it is in, of a controller of v1, or of v2 where that has no hierarchy of v1. */
  #group(controller: string): { version: 1 | 2; group: string } {
    const mounts = parseGroupMounts(readLongKernelFile('/proc/self/mountinfo'))
    const groups = parseOwnGroups(groupsOf(this.#postmasterPid))
    const own = mounts.find((m) => m.version === 1 && m.controllers.includes(controller))
    const mount = own ?? mounts.find((m) => m.version === 2)
    const group = groups.get(own ? controller : '')
    if (!mount || group === undefined)
      throw fault('bench.no_group', `the kernel names no group of process ${this.#postmasterPid}`)
    return { version: mount.version, group: directoryOf(mount, group) }
  }

  /** The group that counts its memory: on v2 the one above that of its sessions. */
  #memory(): { version: 1 | 2; group: string } {
    const { version, group } = this.#group('memory')
    return { version, group: version === 1 ? group : dirname(group) }
  }

  memoryInUse(): number {
    const { version, group } = this.#memory()
    const file = version === 1 ? 'memory.usage_in_bytes' : 'memory.current'
    return numberIn(readGroupFile(group, file)) ?? Number.NaN
  }

  /** How often its sessions read and wrote a device since it started. */
  requests(device: string): { reads: number; writes: number } {
    const { version, group } = this.#group('blkio')
    const all =
      version === 1
        ? throttledUse(null, readGroupFile(group, 'blkio.throttle.io_serviced'))
        : ioUse(readGroupFile(group, 'io.stat'))
    return all.get(device) ?? { reads: 0, writes: 0 }
  }

  /** Bytes that were written and wait until the kernel sends them past all limits: v1 alone lets that be. */
  unlimitedWriteBack(): number {
    const { version, group } = this.#memory()
    if (version === 2) return 0
    const stat = numbersOf(readGroupFile(group, 'memory.stat'))
    return (stat.get('total_dirty') ?? 0) + (stat.get('total_writeback') ?? 0)
  }
}

/** What is measured, and on what. */
export type ProbeFacts = { counted: Counted } & Pick<LoopDevice, 'requestsOfFsyncedWrite'>

/** What one limit is held against. */
export type LimitProbe = {
  /** Of `./floe instance limit`, and its value there. */
  option: string
  value: string
  /** The same in what `measure` answers. */
  limit: number
  /** Has programs run that use as much as they get; answers how much that was, a second where the limit is one. */
  measure: (run: (shell: string) => Promise<string>, facts: ProbeFacts) => Promise<number>
}

const IOPS = 800
const MB = 1024 ** 2
const BYTES = 20 * MB
const CORES = 0.3
const MEMORY = 512 * MB

/** Programs at once, and requests of each: six seconds at the limit. */
const PROGRAMS = 8
const REQUESTS = 600
const LARGE_REQUESTS = 60

/** Moments in seconds before and after. */
const timed = (shell: string) => `date +%s.%N; ${shell}; date +%s.%N`
/** Programs of `dd`, each on a file of its own. */
const dd = (words: string) => `for i in $(seq ${PROGRAMS}); do dd status=none ${words} & done; wait`
const FILE = 'probe-$i.tmp'

/** Makes the files; they are overwritten later, so that the file system has next to nothing to write beside. */
export const makeProbeFiles = dd(`if=/dev/zero of=${FILE} bs=256k count=${LARGE_REQUESTS} oflag=direct`)
export const removeProbeFiles = 'rm -f probe-*.tmp'

const rateOf = (shell: string, done: number): LimitProbe['measure'] => {
  return async (run) => {
    const [began, ended] = (await run(timed(shell))).split('\n').map(Number) as [number, number]
    return done / (ended - began)
  }
}
const written = (words: string) => dd(`if=/dev/zero of=${FILE} conv=notrunc ${words}`)
const read = (words: string) => dd(`if=${FILE} of=/dev/null iflag=direct ${words}`)
const small = `bs=8k count=${REQUESTS}`
const large = `bs=256k count=${LARGE_REQUESTS}`
const requests = PROGRAMS * REQUESTS
const bytes = PROGRAMS * LARGE_REQUESTS * 256 * 1024

/** What each kind of limit is measured by. */
export const limitProbes: Record<string, LimitProbe> = {
  'direct writes a second': {
    ...{ option: '--data-write-iops', value: String(IOPS), limit: IOPS },
    measure: rateOf(written(`${small} oflag=direct`), requests),
  },
  'requests of fsynced writes a second': {
    ...{ option: '--data-write-iops', value: String(IOPS), limit: IOPS },
    // by what is asked for: what the kernel counts is more, and more again where it holds one back twice
    measure: async (run, facts) =>
      facts.requestsOfFsyncedWrite * (await rateOf(written(`${small} oflag=dsync`), requests)(run, facts)),
  },
  'direct reads a second': {
    ...{ option: '--data-read-iops', value: String(IOPS), limit: IOPS },
    measure: rateOf(read(small), requests),
  },
  'bytes written a second': {
    ...{ option: '--data-write-bytes', value: '20MB', limit: BYTES },
    measure: rateOf(written(`${large} oflag=direct`), bytes),
  },
  'bytes read a second': {
    ...{ option: '--data-read-bytes', value: '20MB', limit: BYTES },
    measure: rateOf(read(large), bytes),
  },
  'cores in use': {
    ...{ option: '--cpu', value: String(CORES), limit: CORES },
    measure: async (run) => {
      const busy = "timeout 5 sh -c 'while :; do :; done'"
      const said = await run(timed(`${busy} & ${busy} & wait; times`))
      const moments = said.split('\n').filter((line) => /^\d+\.\d+$/.test(line))
      const [began, ended] = moments.map(Number) as [number, number]
      return processorSeconds(said) / (ended - began)
    },
  },
  'bytes of memory in use': {
    ...{ option: '--memory-max', value: '512MB', limit: MEMORY },
    // a file with nothing in it that is larger than the limit: the kernel keeps as much of it as it may
    measure: async (run, facts) => {
      await run(`truncate -s ${2 * MEMORY} probe-memory.tmp; cat probe-memory.tmp >/dev/null`)
      return facts.counted.memoryInUse()
    },
  },
}

/** Of `times` of a shell: the last two words are user and system time of its children, as `0m1.50s`. */
export function processorSeconds(said: string): number {
  const times = [...said.matchAll(/(\d+)m(\d+\.\d+)s/g)].slice(-2)
  return times.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0)
}

/**
 * How far a rate is from its limit, percent. Where the device itself does not reach the limit, only what is above it is
 * the limit's fault.
 */
export function limitError(rate: number, unlimited: number, limit: number): number {
  const above = Math.max(0, rate / limit - 1)
  const below = unlimited >= limit * 1.1 ? Math.max(0, 1 - rate / limit) : 0
  return Math.max(above, below) * 100
}
