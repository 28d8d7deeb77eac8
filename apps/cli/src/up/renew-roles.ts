import { FaultError, formatFault, type Installation } from '@floe/domain'
import { consoleFault, createConsoleClient } from '../console/client'
import { waitForOperation } from '../console/wait-for-operation'
import type { Home } from '../installation/home'
import type { Progress, StepReport } from '../progress/progress'
import { waitForReports } from './wait-for-reports'

/** One standby after another reconnects; an unreachable host is waited for. */
const DEADLINE_MS = 600_000

/**
 * Orders new roles for the clusters of an earlier version, whose members come as roles that anybody could foresee. Nothing
 * is restarted. A cluster where that fails goes on as it is, and is named, as is a member whose host is of an earlier version.
 */
export async function renewRoles(
  home: Home,
  installation: Installation,
  report: StepReport,
  progress: Progress,
): Promise<void> {
  const client = createConsoleClient(home, installation)
  await waitForReports(client, installation)
  const { clusters } = await client.trpc.cluster.list.query()
  for (const { name, clusterId, foreseeableMembers } of clusters) {
    if (foreseeableMembers.length === 0) continue
    report.now(`cluster ${name} gets new roles`)
    try {
      const { openOperation } = await client.trpc.cluster.show.query({ clusterId })
      const operationId =
        // begun by a run that was killed
        openOperation?.kind === 'renew-roles'
          ? openOperation.operationId
          : (await client.trpc.cluster.renewRoles.mutate({ clusterId })).operationId
      const { result } = await waitForOperation(client, operationId, { deadlineMs: DEADLINE_MS, show: false })
      const left = (result?.left ?? []) as string[]
      progress.say(
        left.length === 0
          ? `members of cluster "${name}" log in as roles that nobody foresees`
          : `cluster "${name}" has roles that can be foreseen; "./floe cluster renew-roles ${name}" tries again\n${left.join('\n')}`,
      )
    } catch (error) {
      const { fault } = error instanceof FaultError ? error : consoleFault(error)
      progress.say(
        `cluster "${name}" has roles that can be foreseen; "./floe cluster renew-roles ${name}" tries again\n${formatFault(fault)}`,
      )
    }
  }
}
