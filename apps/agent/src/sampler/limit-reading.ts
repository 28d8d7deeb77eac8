import type { InstanceLimits } from '@floe/domain'
import { type Devices, deviceBusyMs } from '../host/limits/device'
import { type GroupUse, limitsByDevice } from '../host/limits/driver'
import type { Reading } from './reading'
import type { DeviceSeen } from './stall-detector'

/** What its cgroup counted, and what is in force there. */
export type LimitReading = { use: GroupUse; inForce: InstanceLimits | null; devices: Devices }

/** What was used and what is in force, as far as it is known: metrics of a sample. */
export function addLimits({ counters, gauges }: Reading, { use, inForce, devices }: LimitReading): void {
  const ownWal = devices.wal !== null && devices.wal.number !== devices.data?.number
  const data = devices.data === null ? undefined : use.devices.get(devices.data.number)
  const wal = ownWal ? use.devices.get(devices.wal?.number ?? '') : undefined
  if (use.cpuThrottledSeconds !== null) counters.cpu_throttled = use.cpuThrottledSeconds
  if (use.ioWaitSeconds !== null) counters.io_stall = use.ioWaitSeconds
  if (use.memoryWaitSeconds !== null) counters.memory_stall = use.memoryWaitSeconds
  if (data) {
    counters.data_device_reads = data.reads
    counters.data_device_writes = data.writes
    counters.data_device_read_bytes = data.readBytes
    counters.data_device_write_bytes = data.writeBytes
  }
  if (wal) {
    counters.wal_device_reads = wal.reads
    counters.wal_device_writes = wal.writes
    counters.wal_device_read_bytes = wal.readBytes
    counters.wal_device_write_bytes = wal.writeBytes
  }
  const known = {
    memory_held: use.memoryHeldBytes,
    write_back_waiting: use.writeBackBytes,
    cpu_limit: inForce?.cpu,
    memory_limit: inForce?.memoryMax,
    memory_high_limit: inForce?.memoryHigh,
    data_device_read_limit: inForce?.dataReadIops,
    data_device_write_limit: inForce?.dataWriteIops,
    data_device_read_bytes_limit: inForce?.dataReadBytes,
    data_device_write_bytes_limit: inForce?.dataWriteBytes,
    wal_device_read_limit: inForce?.walReadIops,
    wal_device_write_limit: inForce?.walWriteIops,
    wal_device_read_bytes_limit: inForce?.walReadBytes,
    wal_device_write_bytes_limit: inForce?.walWriteBytes,
  }
  for (const [name, value] of Object.entries(known) as [keyof typeof known, number | null | undefined][])
    if (typeof value === 'number') gauges[name] = value
}

/** Devices with a limit that is in force, and what of it was used. */
export function limitedDevices({ use, inForce, devices }: LimitReading): DeviceSeen[] {
  if (!inForce) return []
  return [...limitsByDevice(inForce, devices)].flatMap(([number, limits]) => {
    const used = use.devices.get(number)
    const all = [devices.data, devices.wal, ...(devices.tablespaces ?? [])]
    const name = all.find((d) => d?.number === number)?.name
    if (!used || name === undefined) return []
    const pairs = [
      [used.reads, limits.readIops],
      [used.writes, limits.writeIops],
      [used.readBytes, limits.readBytes],
      [used.writeBytes, limits.writeBytes],
    ] as const
    const uses = pairs.flatMap(([u, perSecond]) => (perSecond === null ? [] : { used: u, perSecond }))
    return uses.length > 0 ? { name, uses } : []
  })
}

/** Milliseconds in which its devices had something to do, together; null where that is not known of one of them. */
export function busyOfDevices(
  { devices }: Pick<LimitReading, 'devices'>,
  busyOf = deviceBusyMs,
): number | null {
  const all = [devices.data, devices.wal, ...(devices.tablespaces ?? [])].flatMap((d) => d?.number ?? [])
  let sum = 0
  for (const number of new Set(all)) {
    const busy = busyOf(number)
    if (busy === null) return null
    sum += busy
  }
  return all.length === 0 ? null : sum
}
