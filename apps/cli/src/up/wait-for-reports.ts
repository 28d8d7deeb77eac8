import type { Installation } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type { ConsoleClient } from '../console/client'

/** A report of the agent that was just started is there by then. */
const REPORTED_MS = 10_000
const LOOK_MS = 250

/** The instances that are wanted, once the agent of this host has reported its own: what an earlier version reported lacks facts. */
export async function waitForReports(client: ConsoleClient, { hostId }: Pick<Installation, 'hostId'>) {
  const list = async () => {
    const { instances } = await client.trpc.instance.list.query({})
    return instances.filter((i) => i.intent !== 'deleted')
  }
  let instances: Awaited<ReturnType<typeof list>> = []
  const reported = async () => {
    instances = await list()
    return !instances.some((i) => i.hostId === hostId && i.state !== 'unknown' && i.user === null)
  }
  await waitFor(reported, { boundMs: REPORTED_MS, everyMs: LOOK_MS })
  return instances
}
