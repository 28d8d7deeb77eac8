import {
  type Fault,
  FaultError,
  fault,
  formatLimit,
  hasLimits,
  type InstanceLimits,
  type LimitsObserved,
  limitNames,
  limitRecord,
  toFault,
} from '@floe/domain'
import type { Log } from '@floe/host/log'
import { isRunning, type ProcessStat, readProcess } from '@floe/host/process'
import { commandOf, programOf, runsAs } from '@floe/host/process-facts'
import type { ChosenDriver } from '../../host/limits/choose'
import { type Devices, devicesOf } from '../../host/limits/device'
import type { GroupUse } from '../../host/limits/driver'
import type { ProcessTree } from '../../host/process-table'
import { ENGINE_PROGRAM, isChildTitle, type Postmaster } from '../process/postmaster'
import { BackgroundProcesses, backgroundKind } from './background'
import { MemoryKills } from './memory-kills'

/** What is in force, and how much memory is held, is read back this often. */
const CHECK_MS = 1_000
/** Where its parts lie is looked at again this often: tablespaces are made while it runs. */
const DEVICES_MS = 10_000
/** That each process is where it belongs is looked at again this often. */
const AGAIN_MS = 30_000

/** Memory that the kernel cannot reclaim is near the limit from this share of it on, and no more below the second. */
const NEAR = 0.9
const NEAR_NO_MORE = 0.85

const NO_DEVICES: Devices = { data: null, wal: null }

type Surroundings = {
  instanceId: string
  dataDirectory: string
  chosen: ChosenDriver
  tree: ProcessTree
  uid: () => number
  ordered: () => InstanceLimits
  /** All processes of it that there are, by other witnesses than who their parent is. */
  processes: () => readonly { stat: ProcessStat }[]
  /** Keeps for the next agent what was seen of kills. */
  killsFile: string
  log: Log
  onChange: () => void
}

/**
 * Keeps the limits of one instance: has it start in its groups, puts its processes where they belong, and sets again what
 * is not in force. A limit that cannot be set keeps no engine from running; the report says that it is not in force.
 */
export class InstanceLimiter {
  readonly #o: Surroundings
  #postmaster: Pick<Postmaster, 'pid' | 'startTicks'> | null = null
  #devices: Devices = NO_DEVICES
  /** Processes that are where they belong. */
  readonly #placed = new Set<number>()
  readonly #background = new BackgroundProcesses()
  #placedAgainAt = Number.NEGATIVE_INFINITY
  #checkedAt = Number.NEGATIVE_INFINITY
  #devicesAt = Number.NEGATIVE_INFINITY
  /** What was ordered and in force when limits were set last. */
  #set: string | null = null
  #setting: Promise<void> | null = null
  #applying = false
  #inForce: InstanceLimits | null = null
  #refused: Fault | null = null
  #memoryNearLimit = false
  #count: number | null = null
  readonly #kills: MemoryKills
  #unlimitedWriteBack: number | null = null
  #used: { use: GroupUse | null; at: number } = { use: null, at: Number.NEGATIVE_INFINITY }
  #said = ''
  /** Whether there may be groups of it. */
  #made = true

  constructor(o: Surroundings) {
    this.#o = o
    this.#kills = new MemoryKills({
      instanceId: o.instanceId,
      file: o.killsFile,
      onError: (error) =>
        o.log.warn('limits.kill_not_stored', { instanceId: o.instanceId, reason: String(error) }),
    })
  }

  /** Makes its groups, with its limits, for a start; answers what the postmaster enters. */
  async beforeStart(): Promise<readonly string[]> {
    const { chosen, instanceId } = this.#o
    if (!chosen.driver) return []
    this.#made = true
    try {
      chosen.driver.prepare(instanceId)
      await this.#apply()
      return chosen.driver.entrances(instanceId)
    } catch (error) {
      this.#refuse(error)
      return []
    }
  }

  /** `resting`: neither starts nor works. */
  look(postmaster: Postmaster | null, resting: boolean): void {
    const { chosen, instanceId, log } = this.#o
    if (!chosen.driver) return
    const same =
      postmaster?.pid === this.#postmaster?.pid && postmaster?.startTicks === this.#postmaster?.startTicks
    try {
      if (!same) {
        this.#placed.clear()
        this.#background.clear()
        this.#set = null
        this.#checkedAt = Number.NEGATIVE_INFINITY
        this.#postmaster = postmaster && { pid: postmaster.pid, startTicks: postmaster.startTicks }
        if (postmaster) {
          this.#made = true
          chosen.driver.adopt(instanceId, postmaster.pid)
          this.#placeAll(postmaster)
        }
      }
      if (postmaster) {
        this.#placeNew(postmaster)
        this.#check()
      } else if (resting) this.#ended()
    } catch (error) {
      log.warn('limits.look_failed', { instanceId, reason: String(error) })
    }
  }

  /** Sets other limits, at once where it runs. Throws what keeps them from being set; then the earlier ones are. */
  async change(store: () => void, putBack: () => void): Promise<void> {
    const { chosen, ordered } = this.#o
    const before = ordered()
    store()
    try {
      if (!chosen.driver && hasLimits(ordered())) throw new FaultError(chosen.whyNot as Fault)
      this.#refuseBelowUse(before)
      if (this.#postmaster) await this.#apply()
    } catch (error) {
      putBack()
      if (this.#postmaster) await this.#apply().catch((again) => this.#refuse(again))
      throw error instanceof FaultError ? error : refusedByKernel(error)
    } finally {
      this.#checkedAt = Number.NEGATIVE_INFINITY
      this.#check()
    }
  }

  /** What it used, by its groups; null where it has none. */
  use(): GroupUse | null {
    const use = this.#postmaster ? (this.#o.chosen.driver?.use(this.#o.instanceId) ?? null) : null
    this.#used = { use, at: performance.now() }
    return use
  }

  /** For a sample. */
  reading() {
    const use = this.use()
    return use && { use, inForce: this.#inForce, devices: this.#devices }
  }

  observed(): LimitsObserved {
    const { chosen, ordered } = this.#o
    const inForce = this.#postmaster ? this.#inForce : null
    return {
      driver: chosen.driver?.kind ?? null,
      whyNot: chosen.whyNot ?? this.#refused,
      ordered: ordered(),
      inForce,
      gaps: this.#gaps(),
      exempt: this.#background.kinds,
      devices: { data: this.#devices.data?.name ?? null, wal: this.#devices.wal?.name ?? null },
      memoryNearLimit: this.#memoryNearLimit,
      outOfMemoryKills: this.#count,
      lastMemoryKill: this.#kills.last,
      unlimitedWriteBackBytes: this.#unlimitedWriteBack,
    }
  }

  /** A max below what it holds would have the kernel kill at once. */
  #refuseBelowUse(before: InstanceLimits): void {
    const { memoryMax } = this.#o.ordered()
    const held = this.use()?.memoryHeldBytes ?? 0
    if (memoryMax === null || memoryMax === before.memoryMax || held < memoryMax * NEAR) return
    throw fault('limit.memory_in_use', 'the instance uses more memory than that', {
      detail: `It holds ${Math.round(held / 1024 ** 2)} MB that the kernel cannot reclaim; the limit would be ${formatLimit('memoryMax', memoryMax)}.`,
      hint: 'Lower shared_buffers or end sessions first; or stop the instance, set the limit, and start it.',
    })
  }

  async #apply(): Promise<void> {
    const { chosen, instanceId, ordered, dataDirectory } = this.#o
    if (!chosen.driver) return
    // one change after the other: what was ordered last is set last
    const before = this.#setting ?? Promise.resolve()
    const driver = chosen.driver
    this.#setting = before
      .catch(() => {})
      .then(async () => {
        const found = findDevices(dataDirectory)
        // limits of devices that are not known for a moment stay where they are, and are set again at the next look
        if (found) this.#devices = found
        const limits = ordered()
        this.#applying = true
        try {
          await driver.apply(instanceId, limits, this.#devices)
        } finally {
          this.#applying = false
        }
        this.#inForce = driver.inForce(instanceId, this.#devices)
        this.#set = found && JSON.stringify([limits, this.#inForce])
        this.#refused = null
      })
    await this.#setting
  }

  /** Sees to it that what was set is in force still, and how near its memory is to the limit. */
  #check(): void {
    const { chosen, instanceId, ordered } = this.#o
    const now = performance.now()
    if (!chosen.driver || !this.#postmaster || now - this.#checkedAt < CHECK_MS) return
    this.#checkedAt = now
    if (now - this.#devicesAt >= DEVICES_MS) {
      this.#devicesAt = now
      const found = findDevices(this.#o.dataDirectory)
      // #apply() looks once more, and takes what it finds
      if (found && JSON.stringify(found) !== JSON.stringify(this.#devices)) this.#set = null
    }
    this.#inForce = chosen.driver.inForce(instanceId, this.#devices)
    if (!this.#applying && this.#set !== JSON.stringify([ordered(), this.#inForce]))
      this.#apply()
        .catch((error) => this.#refuse(error))
        .finally(() => this.#tell())
    // the sampler has asked a moment ago, as long as the engine answers
    const use = now - this.#used.at < 2 * CHECK_MS ? this.#used.use : this.use()
    const { memoryHigh, memoryMax } = ordered()
    const limit = Math.min(memoryHigh ?? Number.POSITIVE_INFINITY, memoryMax ?? Number.POSITIVE_INFINITY)
    const held = use?.memoryHeldBytes ?? 0
    this.#memoryNearLimit = held >= limit * (this.#memoryNearLimit ? NEAR_NO_MORE : NEAR)
    this.#count = use?.outOfMemoryKills ?? null
    this.#kills.see(this.#count)
    const bytes = limitsWrites(ordered()) && !chosen.driver.limitsWriteBack ? use?.writeBackBytes : null
    this.#unlimitedWriteBack = bytes === null || bytes === undefined ? null : stepAbove(bytes)
    this.#tell()
  }

  #tell(): void {
    const said = JSON.stringify(this.observed())
    if (said === this.#said) return
    this.#said = said
    this.#o.onChange()
  }

  #refuse(error: unknown): void {
    const { log, instanceId } = this.#o
    const refused = error instanceof FaultError ? error : refusedByKernel(error)
    if (this.#refused?.detail !== refused.fault.detail)
      log.warn('limits.not_set', { instanceId, fault: refused.fault })
    this.#refused = refused.fault
  }

  #gaps(): LimitsObserved['gaps'] {
    const { chosen, ordered } = this.#o
    const limits = ordered()
    const { data, wal } = this.#devices
    const gaps: LimitsObserved['gaps'] = [...(chosen.driver?.gaps(limits) ?? [])]
    if (!this.#postmaster) return gaps
    for (const limit of limitNames) {
      const { of } = limitRecord(limit)
      if (limits[limit] === null || (of !== 'data' && of !== 'wal')) continue
      if ((of === 'data' ? data : wal) === null)
        gaps.push({
          limit,
          why: `The file system of the ${of === 'data' ? 'data directory' : 'WAL'} is not on a block device that can be limited.`,
        })
      else if (of === 'wal' && wal?.number === data?.number)
        gaps.push({
          limit,
          why: `WAL lies on device ${data?.name} with the data: the limits of data hold for both.`,
        })
    }
    return gaps
  }

  /** Every process of it, whoever its parent is: of an engine that an agent without limits started. */
  #placeAll(postmaster: Postmaster): void {
    for (const { stat } of this.#o.processes()) this.#place(postmaster, stat, false)
  }

  /** The postmaster and its children that were not seen before. */
  #placeNew(postmaster: Postmaster): void {
    const now = performance.now()
    if (now - this.#placedAgainAt > AGAIN_MS) {
      this.#placedAgainAt = now
      this.#placed.clear()
    }
    const pids = [postmaster.pid, ...this.#o.tree.childrenOf(postmaster.pid)]
    const there = new Set(pids)
    for (const pid of this.#placed) if (!there.has(pid)) this.#placed.delete(pid)
    // who has the pid of one that ended is somebody else, and is looked at
    for (const pid of this.#background.dropEnded((pid) => readProcess(pid)?.startTicks ?? null))
      this.#placed.delete(pid)
    const unplaced = pids.filter((pid) => !this.#placed.has(pid)).flatMap((pid) => readProcess(pid) ?? [])
    // of two with the same title the older one is the engine's own
    for (const stat of unplaced.sort((a, b) => a.startTicks - b.startTicks))
      if (isOf(postmaster, stat)) this.#place(postmaster, stat, true)
  }

  #place(postmaster: Postmaster, stat: ProcessStat, own: boolean): void {
    const { chosen, instanceId, uid } = this.#o
    const { pid } = stat
    if (!chosen.driver || !isRunning(stat) || !runsAs(pid, uid())) return
    const command = commandOf(pid)
    const child = pid !== postmaster.pid
    const kind = own && child && programOf(pid) === ENGINE_PROGRAM ? backgroundKind(command[0] ?? '') : null
    const background = kind !== null && this.#background.mayBe(kind, stat)
    const placed = chosen.driver.place(instanceId, pid, background ? 'background' : 'sessions')
    const after = readProcess(pid)
    if (after && after.startTicks !== stat.startTicks) {
      chosen.driver.giveBack(pid, after.parent)
      return
    }
    if (background) this.#background.take(kind, stat)
    // one that has just been forked has its parent's command line: it is looked at again
    if (placed && own && (!child || isChildTitle(command))) this.#placed.add(pid)
  }

  #ended(): void {
    if (!this.#made) return
    // the postmaster itself may have been killed, and the count goes with the group
    this.#kills.see(this.#o.chosen.driver?.use(this.#o.instanceId)?.outOfMemoryKills ?? null)
    this.#made = this.#o.chosen.driver?.forget(this.#o.instanceId) === false
    this.#inForce = null
    this.#memoryNearLimit = false
    this.#count = null
    this.#unlimitedWriteBack = null
    this.#refused = null
    this.#tell()
  }
}

const limitsWrites = (limits: InstanceLimits) =>
  limitNames.some((name) => name.includes('Write') && limits[name] !== null)

/** Powers of two of MB: what changes all the time is not reported all the time. */
export const stepAbove = (bytes: number): number =>
  bytes === 0 ? 0 : 2 ** Math.max(20, Math.ceil(Math.log2(bytes)))

const refusedByKernel = (error: unknown) =>
  fault('limit.refused', 'the kernel refused the limits', { detail: `${toFault(error).detail}.` })

/** The tree of processes may be behind: a pid in it may be another instance's process by now. */
export const isOf = (
  postmaster: Pick<ProcessStat, 'pid' | 'startTicks'>,
  stat: Pick<ProcessStat, 'pid' | 'startTicks' | 'parent'>,
): boolean =>
  stat.pid === postmaster.pid ? stat.startTicks === postmaster.startTicks : stat.parent === postmaster.pid

/** Null: it is being made, or has another name for a moment. */
function findDevices(dataDirectory: string): Devices | null {
  try {
    return devicesOf(dataDirectory)
  } catch {
    return null
  }
}
