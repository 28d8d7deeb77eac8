import { lchownSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fault, type InstanceLimits, type LimitDriverKind } from '@floe/domain'
import {
  directoryOf,
  type GroupMount,
  type GroupsOf,
  isGroup,
  parseOwnGroups,
} from '@floe/host/control-groups'
import { runCommand } from '../run-command'
import { limitProperties, packagedUnitName, type RunCommand, unitName } from '../supervise-systemd'
import { CgroupV2 } from './cgroup-v2'

/** What systemd gives to the user of a unit that was delegated its group. */
const DELEGATED = ['', 'cgroup.procs', 'cgroup.threads', 'cgroup.subtree_control']

/**
 * cgroup v2 where instances are units of systemd. The unit's own group is systemd's, so processors and memory are limited by
 * its properties, which systemd keeps. What lies below was delegated: the parts, and limits of I/O.
 */
export class CgroupSystemd extends CgroupV2 {
  override readonly kind: LimitDriverKind = 'systemd'
  readonly #run: RunCommand
  /** Group of each unit that was seen to run. */
  readonly #groups = new Map<string, string>()

  constructor(mount: GroupMount, groupsOf: GroupsOf, run: RunCommand = runCommand) {
    super(mount, groupsOf)
    this.#run = run
  }

  protected override group(instanceId: string): string {
    return this.#groups.get(instanceId) ?? this.#expectedGroup(instanceId)
  }

  /** That of one which was not adopted yet: of either kind of unit, where it is there. */
  #expectedGroup(instanceId: string): string {
    const place = (unit: string) => join(this.mount.path, 'floe.slice', unit)
    const packaged = place(packagedUnitName(instanceId))
    return isGroup(packaged) ? packaged : place(unitName(instanceId))
  }

  /** Its group is made with the unit. */
  override prepare(): void {}

  override entrances(): readonly string[] {
    return []
  }

  override adopt(instanceId: string, postmasterPid: number): void {
    const path = (parseOwnGroups(this.groupsOf(postmasterPid)).get('') ?? '').split('/')
    const units = [unitName(instanceId), packagedUnitName(instanceId)]
    const at = path.findIndex((part) => units.includes(part))
    // one that an earlier version started, outside of a unit, cannot be limited until it is started again
    if (at < 0) return
    const group = directoryOf(this.mount, path.slice(0, at + 1).join('/'))
    this.#groups.set(instanceId, group)
    if (!isGroup(group)) return
    takeBack(group)
    this.makeParts(instanceId)
  }

  override async apply(...[instanceId, limits, devices]: Parameters<CgroupV2['apply']>): Promise<void> {
    // before its start the properties are given with the unit
    if (!isGroup(this.group(instanceId))) return
    this.passOn(instanceId)
    await super.apply(instanceId, limits, devices)
  }

  protected override async applyToGroup(instanceId: string, limits: InstanceLimits): Promise<void> {
    const unit = basename(this.group(instanceId))
    const r = await this.#run('systemctl', ['set-property', '--runtime', unit, ...limitProperties(limits)], {
      timeoutMs: 30_000,
    })
    if (r.status !== 0)
      throw fault('limit.refused', `systemd refused the limits of unit "${unit}"`, {
        detail: r.stderr.trim() || `systemctl ended with status ${r.status ?? r.signal}.`,
      })
  }

  /** Removed with the unit. */
  protected override forgetGroup(instanceId: string): boolean {
    this.#groups.delete(instanceId)
    return true
  }
}

/** systemd gave the group to the unit's user, who could make groups without limits in it and move there. */
function takeBack(group: string): void {
  for (const name of DELEGATED)
    try {
      lchownSync(join(group, name), 0, 0)
    } catch {
      // a kernel that has no such file
    }
}
