import { basename, dirname, join } from 'node:path'
import type { InstanceLimits, LimitDriverKind } from '@floe/domain'
import {
  directoryOf,
  type GroupMount,
  type GroupsOf,
  ioUse,
  isGroup,
  numberIn,
  numbersOf,
  parseOwnGroups,
  readGroupFile,
  secondsWaited,
  wordsByDevice,
} from '@floe/host/control-groups'
import type { Devices } from './device'
import {
  CPU_PERIOD_US,
  coresOf,
  type GroupUse,
  type IoLimits,
  type LimitDriver,
  limitsByDevice,
  limitsOfDevices,
  type Part,
  quotaOf,
  setEach,
} from './driver'
import { makeGroup, moveTo, removeGroup, writeGroupFile } from './group-files'

const PARENT = 'floe'
/** Where the agent itself goes if it must not stay in its own group. */
const AGENT = 'floe-agent'
const PARTS: readonly Part[] = ['sessions', 'background']
/** Controllers that limits are made of. */
export const v2Controllers = ['cpu', 'memory', 'io'] as const
/** Those that the parts of an instance have, too. */
const PASSED_ON = ['memory', 'io'] as const satisfies readonly (typeof v2Controllers)[number][]

const ioWords = {
  readIops: 'riops',
  writeIops: 'wiops',
  readBytes: 'rbps',
  writeBytes: 'wbps',
} as const satisfies Record<keyof IoLimits, string>

/**
 * cgroup v2: one group an instance, which limits processors and memory, with a group for each part below it, as the kernel
 * wants: processes only in leaves. Limits of I/O are those of the sessions' leaf.
 */
export class CgroupV2 implements LimitDriver {
  readonly kind: LimitDriverKind = 'cgroup-v2'
  readonly limitsWriteBack = true
  protected readonly mount: GroupMount
  protected readonly groupsOf: GroupsOf
  /** The agent's own group, below which all are. */
  readonly #own: string

  constructor(mount: GroupMount, groupsOf: GroupsOf) {
    this.mount = mount
    this.groupsOf = groupsOf
    this.#own = ownGroup(mount, groupsOf)
  }

  /** An instance's own group. */
  protected group(instanceId: string): string {
    return join(this.#own, PARENT, instanceId)
  }

  #leaf(instanceId: string, part: Part): string {
    return join(this.group(instanceId), part)
  }

  prepare(instanceId: string): void {
    const group = this.group(instanceId)
    const parent = join(this.#own, PARENT)
    this.#enableBelowOwn()
    makeGroup(parent)
    enable(parent, v2Controllers)
    makeGroup(group)
    this.makeParts(instanceId)
    this.passOn(instanceId)
  }

  /**
   * Only in the root of all may processes stay beside groups that have controllers: elsewhere the agent makes way. Where
   * somebody else's are left in its group the kernel goes on refusing.
   */
  #enableBelowOwn(): void {
    try {
      enable(this.#own, v2Controllers)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error
      const below = join(this.#own, AGENT)
      makeGroup(below)
      moveTo(below, process.pid)
      enable(this.#own, v2Controllers)
    }
  }

  protected makeParts(instanceId: string): void {
    for (const part of PARTS) makeGroup(this.#leaf(instanceId, part))
  }

  /**
   * Lets the parts have limits of I/O; refused by the kernel while a process is in the group above them. What is written
   * through the page cache counts for the group that the pages are charged to: without memory of their own the parts would
   * have none, and fsynced and written-back writes no limit.
   */
  protected passOn(instanceId: string): void {
    enable(this.group(instanceId), PASSED_ON)
  }

  entrances(instanceId: string): readonly string[] {
    return [join(this.#leaf(instanceId, 'sessions'), 'cgroup.procs')]
  }

  adopt(instanceId: string, _postmasterPid: number): void {
    this.prepare(instanceId)
  }

  place(instanceId: string, pid: number, part: Part): boolean {
    const wanted = this.#leaf(instanceId, part)
    const group = parseOwnGroups(this.groupsOf(pid)).get('')
    if (group === undefined) return false
    return directoryOf(this.mount, group) === wanted || moveTo(wanted, pid)
  }

  giveBack(pid: number, parent: number): void {
    const group = parseOwnGroups(this.groupsOf(parent)).get('')
    if (group !== undefined) moveTo(directoryOf(this.mount, group), pid)
  }

  async apply(instanceId: string, limits: InstanceLimits, devices: Devices): Promise<void> {
    // one that the kernel refuses leaves no other unset
    const results = await Promise.allSettled([
      this.applyToGroup(instanceId, limits),
      this.#applyToSessions(instanceId, limitsByDevice(limits, devices)),
    ])
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  /** I/O. Without the controller there is no such file, and gaps() says so. */
  async #applyToSessions(instanceId: string, wanted: ReadonlyMap<string, IoLimits>): Promise<void> {
    const leaf = this.#leaf(instanceId, 'sessions')
    const before = readGroupFile(leaf, 'io.max')
    if (before === null) return
    // the links to tablespaces are the instance's user's: a device that refuses costs no other one its limits
    setEach(new Set([...ioMax(before).keys(), ...wanted.keys()]), (number) => {
      const io = wanted.get(number)
      const words = (Object.entries(ioWords) as [keyof IoLimits, string][]).map(
        ([name, word]) => `${word}=${io?.[name] ?? 'max'}`,
      )
      writeGroupFile(leaf, 'io.max', `${number} ${words.join(' ')}`)
    })
  }

  /** Processors and memory. */
  protected async applyToGroup(instanceId: string, { cpu, memoryHigh, memoryMax }: InstanceLimits) {
    const group = this.group(instanceId)
    const files = {
      'cpu.max': `${cpu === null ? 'max' : quotaOf(cpu)} ${CPU_PERIOD_US}`,
      'memory.high': String(memoryHigh ?? 'max'),
      'memory.max': String(memoryMax ?? 'max'),
    }
    for (const [file, text] of Object.entries(files))
      if (readGroupFile(group, file) !== null) writeGroupFile(group, file, text)
  }

  inForce(instanceId: string, devices: Devices): InstanceLimits | null {
    const group = this.group(instanceId)
    if (!isGroup(group)) return null
    const [quota, period] = readGroupFile(group, 'cpu.max')?.trim().split(' ').map(Number) ?? []
    const io = ioMax(readGroupFile(this.#leaf(instanceId, 'sessions'), 'io.max'))
    return {
      cpu: quota && period && Number.isFinite(quota) ? coresOf(quota, period) : null,
      memoryHigh: numberIn(readGroupFile(group, 'memory.high')),
      memoryMax: numberIn(readGroupFile(group, 'memory.max')),
      ...limitsOfDevices(
        devices,
        (n) => io.get(n) ?? { readIops: null, writeIops: null, readBytes: null, writeBytes: null },
      ),
    }
  }

  use(instanceId: string): GroupUse | null {
    const group = this.group(instanceId)
    if (!isGroup(group)) return null
    const cpu = numbersOf(readGroupFile(group, 'cpu.stat'))
    const stat = numbersOf(readGroupFile(group, 'memory.stat'))
    const [anon, shmem] = [stat.get('anon'), stat.get('shmem')]
    const [dirty, sent] = [stat.get('file_dirty'), stat.get('file_writeback')]
    const seconds = (microseconds: number | undefined) =>
      microseconds === undefined ? null : microseconds / 1e6
    const leaf = this.#leaf(instanceId, 'sessions')
    return {
      cpuSeconds: seconds(cpu.get('usage_usec')),
      cpuThrottledSeconds: seconds(cpu.get('throttled_usec')),
      memoryBytes: numberIn(readGroupFile(group, 'memory.current')),
      memoryHeldBytes:
        anon === undefined || shmem === undefined ? null : anon + shmem + (stat.get('kernel') ?? 0),
      outOfMemoryKills: numbersOf(readGroupFile(group, 'memory.events')).get('oom_kill') ?? null,
      writeBackBytes: dirty === undefined || sent === undefined ? null : dirty + sent,
      ioWaitSeconds: secondsWaited(readGroupFile(leaf, 'io.pressure')),
      memoryWaitSeconds: secondsWaited(readGroupFile(leaf, 'memory.pressure')),
      devices: ioUse(readGroupFile(leaf, 'io.stat')),
    }
  }

  gaps(limits: InstanceLimits) {
    const there = controllersIn(this.#own)
    return (Object.entries(limits) as [keyof InstanceLimits, number | null][]).flatMap(([limit, value]) => {
      const controller = limit === 'cpu' ? 'cpu' : limit.startsWith('memory') ? 'memory' : 'io'
      return value === null || there.has(controller)
        ? []
        : [{ limit, why: `The host has no controller "${controller}" of cgroup v2.` }]
    })
  }

  forget(instanceId: string): boolean {
    return (
      !PARTS.map((part) => removeGroup(this.#leaf(instanceId, part))).includes(false) &&
      this.forgetGroup(instanceId)
    )
  }

  protected forgetGroup(instanceId: string): boolean {
    const group = this.group(instanceId)
    const gone = removeGroup(group)
    removeGroup(dirname(group))
    return gone
  }
}

/** The agent's own group of cgroup v2. */
export function ownGroup(mount: GroupMount, groupsOf: GroupsOf): string {
  const own = directoryOf(mount, parseOwnGroups(groupsOf(process.pid)).get('') ?? '/')
  return basename(own) === AGENT ? dirname(own) : own
}

/** The controllers that a group has, or those that it passes on. */
export const controllersIn = (
  directory: string,
  file: 'cgroup.controllers' | 'cgroup.subtree_control' = 'cgroup.controllers',
): ReadonlySet<string> => new Set(readGroupFile(directory, file)?.trim().split(' ') ?? [])

/** Lets the groups below have controllers; those that the kernel does not have are left out, and gaps() names them. */
function enable(directory: string, controllers: readonly string[]): void {
  const there = controllersIn(directory)
  const on = controllersIn(directory, 'cgroup.subtree_control')
  const missing = controllers.filter((c) => there.has(c) && !on.has(c))
  if (missing.length > 0)
    writeGroupFile(directory, 'cgroup.subtree_control', missing.map((c) => `+${c}`).join(' '))
}

/** Lines of `254:0 rbps=max wbps=max riops=max wiops=800`. */
function ioMax(text: string | null): Map<string, IoLimits> {
  return new Map(
    [...wordsByDevice(text)].map(([number, words]) => {
      const of = (name: keyof IoLimits) => numberIn(words.get(ioWords[name]) ?? null)
      return [
        number,
        {
          readIops: of('readIops'),
          writeIops: of('writeIops'),
          readBytes: of('readBytes'),
          writeBytes: of('writeBytes'),
        },
      ]
    }),
  )
}
