import { dirname, join } from 'node:path'
import type { InstanceLimits } from '@floe/domain'
import {
  directoryOf,
  type GroupMount,
  type GroupsOf,
  isGroup,
  numberIn,
  numbersOf,
  parseOwnGroups,
  readGroupFile,
  secondsWaited,
  throttledUse,
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
import { isOwn, makeGroup, moveTo, removeGroup, writeGroupFile } from './group-files'

/**
 * No controller, but the hierarchy of v2 that many hosts mount beside those of v1: the kernel counts in each of its groups how
 * long processes waited for storage and for memory.
 */
const PRESSURE = ''
/** Controllers that limits are made of; cpuacct only counts, and so does the last one. */
const v1Controllers = ['cpu', 'cpuacct', 'memory', 'blkio', PRESSURE] as const
type Controller = (typeof v1Controllers)[number]
/** Of these the background processes have a group of their own. */
const byPart: ReadonlySet<Controller> = new Set(['blkio', PRESSURE])

/** The parent of all instances' groups, below the agent's own: limits that lie above the agent stay in force. */
const PARENT = 'floe'
const BACKGROUND = '-background'

const throttles = {
  readIops: 'blkio.throttle.read_iops_device',
  writeIops: 'blkio.throttle.write_iops_device',
  readBytes: 'blkio.throttle.read_bps_device',
  writeBytes: 'blkio.throttle.write_bps_device',
} as const satisfies Record<keyof IoLimits, string>

/** The kernel's word for no limit of memory is the largest number that pages make up. */
const MEMORY_UNLIMITED = 2 ** 62

/**
 * cgroup v1: a hierarchy for each controller. Processors and memory have one group an instance. Throttling of blkio counts
 * what a group does itself, so the background processes have a sibling there, and where waits are counted.
 */
export class CgroupV1 implements LimitDriver {
  readonly kind = 'cgroup-v1'
  readonly limitsWriteBack = false
  readonly #mounts: Map<Controller, GroupMount>
  readonly #groupsOf: GroupsOf
  /** Directories that the groups of instances are made in, by controller. */
  readonly #parents = new Map<Controller, string>()
  /** The same of single instances, where an agent in another group of its own made them. */
  readonly #elsewhere = new Map<string, string>()

  constructor(mounts: readonly GroupMount[], groupsOf: GroupsOf) {
    this.#groupsOf = groupsOf
    const own = parseOwnGroups(groupsOf(process.pid))
    this.#mounts = new Map(
      v1Controllers.flatMap((c) => {
        const version = c === PRESSURE ? 2 : 1
        const mount = mounts.find((m) => m.version === version && m.controllers.includes(c))
        return mount && own.has(c) ? [[c, mount] as const] : []
      }),
    )
    for (const [c, mount] of this.#mounts)
      this.#parents.set(c, join(directoryOf(mount, own.get(c) as string), PARENT))
  }

  /** Whether anything can be limited. */
  get limitsAnything(): boolean {
    return [...this.#mounts.keys()].some((c) => c !== 'cpuacct' && c !== PRESSURE)
  }

  #directory(controller: Controller, instanceId: string, part: Part): string | null {
    const parent = this.#elsewhere.get(`${controller} ${instanceId}`) ?? this.#parents.get(controller)
    if (parent === undefined) return null
    return join(
      parent,
      byPart.has(controller) && part === 'background' ? instanceId + BACKGROUND : instanceId,
    )
  }

  #all(instanceId: string): string[] {
    return v1Controllers.flatMap((c) => this.#ofController(c, instanceId))
  }

  #ofController(controller: Controller, instanceId: string): string[] {
    const parts: Part[] = byPart.has(controller) ? ['sessions', 'background'] : ['sessions']
    return parts.flatMap((part) => this.#directory(controller, instanceId, part) ?? [])
  }

  prepare(instanceId: string): void {
    for (const controller of this.#mounts.keys())
      try {
        for (const directory of this.#ofController(controller, instanceId)) makeGroup(directory)
      } catch (error) {
        if (controller !== PRESSURE) throw error
        // not ours to write: how long processes wait is not known then, and all is limited as before
        this.#mounts.delete(PRESSURE)
        this.#parents.delete(PRESSURE)
      }
  }

  entrances(instanceId: string): readonly string[] {
    return v1Controllers.flatMap((c) => {
      const directory = this.#directory(c, instanceId, 'sessions')
      return directory ? [join(directory, 'cgroup.procs')] : []
    })
  }

  adopt(instanceId: string, postmasterPid: number): void {
    const groups = parseOwnGroups(this.#groupsOf(postmasterPid))
    for (const [controller, mount] of this.#mounts) {
      const group = groups.get(controller)
      if (!group?.endsWith(`/${PARENT}/${instanceId}`)) continue
      const parent = dirname(directoryOf(mount, group))
      if (parent !== this.#parents.get(controller) && isOwn(parent))
        this.#elsewhere.set(`${controller} ${instanceId}`, parent)
    }
    this.prepare(instanceId)
  }

  place(instanceId: string, pid: number, part: Part): boolean {
    const groups = parseOwnGroups(this.#groupsOf(pid))
    let placed = true
    for (const [controller, mount] of this.#mounts) {
      const wanted = this.#directory(controller, instanceId, part) as string
      const group = groups.get(controller)
      if (group === undefined || directoryOf(mount, group) === wanted) continue
      placed = (moveTo(wanted, pid) || controller === PRESSURE) && placed
    }
    return placed
  }

  giveBack(pid: number, parent: number): void {
    const groups = parseOwnGroups(this.#groupsOf(parent))
    for (const [controller, mount] of this.#mounts) {
      const group = groups.get(controller)
      if (group !== undefined) moveTo(directoryOf(mount, group), pid)
    }
  }

  async apply(instanceId: string, limits: InstanceLimits, devices: Devices): Promise<void> {
    const of = (controller: Controller) => this.#directory(controller, instanceId, 'sessions')
    const cpu = of('cpu')
    const memory = of('memory')
    const blkio = of('blkio')
    setEach(
      [
        () => cpu && setProcessors(cpu, limits.cpu),
        () => memory && writeGroupFile(memory, 'memory.limit_in_bytes', String(limits.memoryMax ?? -1)),
        () => blkio && setThrottles(blkio, limits, devices),
      ],
      (set) => set(),
    )
  }

  inForce(instanceId: string, devices: Devices): InstanceLimits | null {
    const of = (controller: Controller) => this.#directory(controller, instanceId, 'sessions')
    const [cpu, memory, blkio] = [of('cpu'), of('memory'), of('blkio')]
    if (![cpu, memory, blkio].some((directory) => directory !== null && isGroup(directory))) return null
    const quota = cpu === null ? null : numberIn(readGroupFile(cpu, 'cpu.cfs_quota_us'))
    const period = cpu === null ? null : numberIn(readGroupFile(cpu, 'cpu.cfs_period_us'))
    const max = memory === null ? null : numberIn(readGroupFile(memory, 'memory.limit_in_bytes'))
    const io = Object.fromEntries(
      Object.entries(throttles).map(([name, file]) => [
        name,
        devicesIn(blkio === null ? null : readGroupFile(blkio, file)),
      ]),
    ) as Record<keyof IoLimits, Map<string, number>>
    return {
      cpu: quota === null || period === null || quota < 0 ? null : coresOf(quota, period),
      memoryHigh: null,
      memoryMax: max === null || max > MEMORY_UNLIMITED ? null : max,
      ...limitsOfDevices(devices, (number) => ({
        readIops: io.readIops.get(number) ?? null,
        writeIops: io.writeIops.get(number) ?? null,
        readBytes: io.readBytes.get(number) ?? null,
        writeBytes: io.writeBytes.get(number) ?? null,
      })),
    }
  }

  use(instanceId: string): GroupUse | null {
    const of = (controller: Controller) => this.#directory(controller, instanceId, 'sessions')
    const [cpu, cpuacct] = [of('cpu'), of('cpuacct')]
    const [memory, blkio, waits] = [of('memory'), of('blkio'), of(PRESSURE)]
    if (![cpu, memory, blkio].some((directory) => directory && isGroup(directory))) return null
    const nanoseconds = cpuacct ? numberIn(readGroupFile(cpuacct, 'cpuacct.usage')) : null
    const throttled = cpu ? numbersOf(readGroupFile(cpu, 'cpu.stat')).get('throttled_time') : undefined
    const stat = numbersOf(memory ? readGroupFile(memory, 'memory.stat') : null)
    const [rss, shmem] = [stat.get('total_rss'), stat.get('total_shmem')]
    const [dirty, sent] = [stat.get('total_dirty'), stat.get('total_writeback')]
    const kernel = memory ? numberIn(readGroupFile(memory, 'memory.kmem.usage_in_bytes')) : null
    const kills = numbersOf(memory ? readGroupFile(memory, 'memory.oom_control') : null).get('oom_kill')
    return {
      cpuSeconds: nanoseconds === null ? null : nanoseconds / 1e9,
      cpuThrottledSeconds: throttled === undefined ? null : throttled / 1e9,
      memoryBytes: memory ? numberIn(readGroupFile(memory, 'memory.usage_in_bytes')) : null,
      memoryHeldBytes: rss === undefined || shmem === undefined ? null : rss + shmem + (kernel ?? 0),
      outOfMemoryKills: kills ?? null,
      writeBackBytes: dirty === undefined || sent === undefined ? null : dirty + sent,
      // v1 itself counts what passed, not how long it was held back
      ioWaitSeconds: waits === null ? null : secondsWaited(readGroupFile(waits, 'io.pressure')),
      memoryWaitSeconds: waits === null ? null : secondsWaited(readGroupFile(waits, 'memory.pressure')),
      devices: blkio
        ? throttledUse(
            readGroupFile(blkio, 'blkio.throttle.io_service_bytes'),
            readGroupFile(blkio, 'blkio.throttle.io_serviced'),
          )
        : new Map(),
    }
  }

  gaps(limits: InstanceLimits) {
    const gaps: { limit: keyof InstanceLimits; why: string }[] = []
    const without = (controller: Controller) => !this.#mounts.has(controller)
    for (const [limit, value] of Object.entries(limits) as [keyof InstanceLimits, number | null][]) {
      if (value === null) continue
      const controller = limit === 'cpu' ? 'cpu' : limit.startsWith('memory') ? 'memory' : 'blkio'
      if (without(controller))
        gaps.push({ limit, why: `The host has no controller "${controller}" of cgroup v1.` })
      else if (limit === 'memoryHigh')
        gaps.push({
          limit,
          why: 'cgroup v1 has no memory.high: nothing slows down there; an incident opens by usage.',
        })
      else if (limit.includes('Write'))
        gaps.push({
          limit,
          why: 'cgroup v1 limits direct and fsynced writes; what the kernel itself writes back later is not limited.',
        })
    }
    return gaps
  }

  forget(instanceId: string): boolean {
    const all = this.#all(instanceId)
    if (all.map(removeGroup).includes(false)) return false
    for (const parent of new Set(all.map(dirname))) removeGroup(parent)
    for (const controller of v1Controllers) this.#elsewhere.delete(`${controller} ${instanceId}`)
    return true
  }
}

function setProcessors(directory: string, cores: number | null): void {
  writeGroupFile(directory, 'cpu.cfs_period_us', String(CPU_PERIOD_US))
  writeGroupFile(directory, 'cpu.cfs_quota_us', String(cores === null ? -1 : quotaOf(cores)))
}

function setThrottles(directory: string, limits: InstanceLimits, devices: Devices): void {
  const wanted = limitsByDevice(limits, devices)
  const lines = (Object.entries(throttles) as [keyof IoLimits, string][]).flatMap(([name, file]) => {
    const numbers = new Set([...wanted.keys(), ...devicesIn(readGroupFile(directory, file)).keys()])
    return [...numbers].map((number) => ({ file, line: `${number} ${wanted.get(number)?.[name] ?? 0}` }))
  })
  // the links to tablespaces are the instance's user's: a device that refuses costs no other one its limits
  setEach(lines, ({ file, line }) => writeGroupFile(directory, file, line))
}

/** Lines of `254:0 800`. */
const devicesIn = (text: string | null): Map<string, number> => {
  const numbers = numbersOf(text)
  numbers.delete('Total')
  return numbers
}
