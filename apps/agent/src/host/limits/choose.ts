import { readFileSync } from 'node:fs'
import { type Fault, FaultError, fault } from '@floe/domain'
import { groupsOf, parseGroupMounts } from '@floe/host/control-groups'
import type { Supervision } from '../supervision'
import { CgroupSystemd } from './cgroup-systemd'
import { CgroupV1 } from './cgroup-v1'
import { CgroupV2, controllersIn, ownGroup, v2Controllers } from './cgroup-v2'
import type { LimitDriver } from './driver'

/** How this host limits instances, or why it cannot. */
export type ChosenDriver = { driver: LimitDriver; whyNot: null } | { driver: null; whyNot: Fault }

/** Of no instance: made and removed to see whether the agent may. */
const TRIAL = 'trial'

export function chooseLimitDriver(
  supervision: Supervision['kind'],
  uid = process.getuid?.() ?? 0,
  mountinfo = readFileSync('/proc/self/mountinfo', 'utf8'),
): ChosenDriver {
  try {
    if (uid !== 0)
      throw fault('limit.no_root', 'the agent does not run as root', {
        detail: 'Only root may make cgroups for other users’ processes.',
        hint: 'Run the agent as root to limit instances.',
      })
    const driver = driverFor(supervision, mountinfo)
    try {
      driver.prepare(TRIAL)
      driver.forget(TRIAL)
    } catch (error) {
      throw fault('limit.no_group', 'the agent cannot make a cgroup', {
        detail: error instanceof Error ? error.message : String(error),
        hint: 'In a container, mount /sys/fs/cgroup writable and give the agent a cgroup of its own.',
      })
    }
    return { driver, whyNot: null }
  } catch (error) {
    if (error instanceof FaultError) return { driver: null, whyNot: error.fault }
    throw error
  }
}

function driverFor(supervision: Supervision['kind'], mountinfo: string): LimitDriver {
  const mounts = parseGroupMounts(mountinfo)
  const v2 = mounts.find((m) => m.version === 2)
  if (v2) {
    const there = controllersIn(ownGroup(v2, groupsOf))
    if (v2Controllers.some((c) => there.has(c)))
      return supervision === 'systemd' ? new CgroupSystemd(v2, groupsOf) : new CgroupV2(v2, groupsOf)
  }
  if (supervision === 'systemd')
    throw fault('limit.no_controller', 'systemd on this host does not use cgroup v2', {
      hint: 'Boot the host with "systemd.unified_cgroup_hierarchy=1" on the kernel’s command line.',
    })
  const v1 = new CgroupV1(mounts, groupsOf)
  if (!v1.limitsAnything)
    throw fault('limit.no_controller', 'the host has none of the cgroup controllers cpu, memory and io', {
      hint: 'Mount a cgroup file system on /sys/fs/cgroup.',
    })
  return v1
}
