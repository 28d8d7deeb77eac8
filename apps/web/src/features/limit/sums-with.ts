import { type InstanceLimits, type LimitSum, sumLimits } from '@floe/domain'

type Mapped = {
  instances: readonly { limits: InstanceLimits }[]
  resources: readonly { resource: string; size: number | null }[]
  memoryHigh: boolean
}

/** What the limits of a host’s instances would add up to with one more; none where the host’s size is not known. */
export function sumsWith({ instances, resources, memoryHigh }: Mapped, limits: InstanceLimits): LimitSum[] {
  const sizeOf = (of: string) => resources.find(({ resource }) => resource === of)?.size ?? null
  const [cpus, memoryBytes] = [sizeOf('cpu'), sizeOf('memory')]
  if (cpus === null || memoryBytes === null) return []
  return sumLimits([...instances.map((i) => i.limits), limits], { cpus, memoryBytes, memoryHigh })
}
