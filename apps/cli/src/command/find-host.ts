import { fault, HostId, HostName } from '@floe/domain'
import type { RouterOutputs } from '@floe/web/api'
import { type ConsoleClient, consoleFault } from '../console/client'

export type HostDetail = RouterOutputs['host']['show']

/** A host by what a person typed: its name or its id. */
export async function findHost({ trpc }: ConsoleClient, nameOrId: string): Promise<HostDetail> {
  const id = HostId.safeParse(nameOrId)
  const name = HostName.safeParse(nameOrId)
  if (!id.success && !name.success) throw fault('usage.host_name', `"${nameOrId}" is not the name of a host`)
  try {
    return await trpc.host.show.query(id.success ? { hostId: id.data } : { name: name.data as string })
  } catch (error) {
    throw consoleFault(error)
  }
}
