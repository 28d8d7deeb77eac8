import { fault, InstanceId, InstanceName } from '@floe/domain'
import type { RouterOutputs } from '@floe/web/api'
import { type ConsoleClient, consoleFault, createClientOf, createConsoleClient } from '../console/client'
import { consoleElsewhere } from '../console/elsewhere'
import { currentHome, requireInstallation } from '../installation/home'

export type InstanceDetail = RouterOutputs['instance']['show']

/** A client of this installation's console, or of the one on another machine that the environment names. */
export function openConsole(): ConsoleClient {
  const elsewhere = consoleElsewhere(process.env)
  if (elsewhere) return createClientOf(elsewhere)
  const home = currentHome()
  return createConsoleClient(home, requireInstallation(home))
}

/** An instance by what a person typed: its name or its id. */
export async function findInstance({ trpc }: ConsoleClient, nameOrId: string): Promise<InstanceDetail> {
  const id = InstanceId.safeParse(nameOrId)
  const name = InstanceName.safeParse(nameOrId)
  if (!id.success && !name.success)
    throw fault('usage.instance_name', `"${nameOrId}" is not the name of an instance`, {
      detail: `A name ${name.error?.issues[0]?.message ?? 'has lower-case letters, digits and hyphens'}.`,
    })
  try {
    return await trpc.instance.show.query(
      id.success ? { instanceId: id.data } : { name: InstanceName.parse(nameOrId) },
    )
  } catch (error) {
    throw consoleFault(error)
  }
}
