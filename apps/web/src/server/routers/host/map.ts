import {
  hostNotFound,
  type InstanceView,
  listInstances,
  listStallsOfHost,
  newestSamples,
  showHost,
} from '@floe/db'
import {
  disksSeen,
  diskUseWords,
  hasMemoryHigh,
  hostMap,
  hostPressures,
  InstanceId,
  type InstanceUse,
  sumLimits,
  unknownUse,
} from '@floe/domain'
import { decodeValues, type MetricName, stallCause } from '@floe/telemetry'
import { viewerProcedure } from '../../procedures'
import { ms } from '../operation/operation.views'
import { HostMapInput, HostMapView } from './host.types'

/** An instance is sampled once a second; what is older than this is not what is now. */
const FRESH_MS = 10_000
/** Stalls of so long are looked at. */
const STALLS_MS = 600_000

type Values = Partial<Record<MetricName, number | null>>

/** Who uses how much of a host's processors, memory and disk now, and what hurts whom. Throws `host.not_found`. */
export const map = viewerProcedure
  .input(HostMapInput)
  .output(HostMapView)
  .query(async ({ ctx, input: { hostId } }) => {
    const { pool } = ctx.ports.database
    const host = await showHost(pool, hostId)
    if (!host) throw hostNotFound(hostId)
    const instances = await listInstances(pool, { hostId })
    const [samples, stalls] = await Promise.all([
      newestSamples(
        pool,
        instances.map((i) => i.instanceId),
      ),
      listStallsOfHost(pool, hostId, STALLS_MS),
    ])
    const now = Date.now()
    const seen = instances.map((instance) => {
      const sample = samples.find((s) => s.instanceId === instance.instanceId)
      const fresh = sample && now - sample.at <= FRESH_MS ? sample : null
      const values: Values = fresh ? decodeValues(fresh.values) : {}
      return {
        instance,
        limits: instance.limits,
        sampleAt: fresh?.at ?? null,
        heldBack: values.cpu_throttled ?? null,
        ioWait: values.io_stall ?? null,
        use: fresh ? usedBy(values) : withoutSample(instance),
      }
    })
    const memoryHigh = hasMemoryHigh(instances.map((i) => i.limitsObserved?.driver ?? null))
    const resources = host.facts
      ? hostMap(
          host.facts,
          seen.map((s) => s.use),
        )
      : []
    const disks = host.facts ? disksSeen(host.facts) : []
    const ioWait = host.facts?.ioWait ?? null
    return {
      observedAt: ms(host.observedAt),
      resources,
      instances: seen.map(({ instance, limits, sampleAt }) => ({
        instanceId: InstanceId.parse(instance.instanceId),
        name: instance.name,
        state: instance.state,
        limits,
        sampleAt,
      })),
      memoryHigh,
      sums: host.facts
        ? sumLimits(
            seen.map((s) => s.limits),
            { ...host.facts, memoryHigh },
          )
        : [],
      diskUse: host.state === 'online' ? diskUseWords(disks, ioWait) : [],
      // of a host that is not heard of nothing is said to hurt now
      pressures:
        host.state === 'online'
          ? hostPressures({
              map: resources,
              instances: seen.map(({ instance, limits, heldBack, ioWait }) => ({
                name: instance.name,
                heldBack,
                ioWait,
                limits,
              })),
              disks,
              ioWait,
              stalls: stalls.map((s) => ({
                ...s,
                reason: stallCause(s),
                shared: s.cause === 'storage' || s.cause === 'checkpointer',
              })),
            })
          : [],
      now,
    }
  })

function usedBy(values: Values): InstanceUse {
  const known = (name: MetricName) => values[name] ?? null
  const databases = known('database_size')
  return {
    cpu: known('process_cpu'),
    memory: known('process_memory'),
    space: databases === null ? null : databases + (known('wal_size') ?? 0),
    reads: known('process_read_bytes'),
    writes: known('process_write_bytes'),
  }
}

/** One that is known to be stopped uses nothing but its space, of which nothing is known then. */
const withoutSample = ({ state }: InstanceView): InstanceUse =>
  state === 'stopped' ? { cpu: 0, memory: 0, space: null, reads: 0, writes: 0 } : unknownUse
