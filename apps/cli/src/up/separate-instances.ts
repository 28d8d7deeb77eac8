import { FaultError, formatFault, type Installation } from '@floe/domain'
import { consoleFault, createConsoleClient } from '../console/client'
import { waitForOperation } from '../console/wait-for-operation'
import type { Home } from '../installation/home'
import type { Progress, StepReport } from '../progress/progress'
import { waitForReports } from './wait-for-reports'

/** A tree of very many files is handed over one by one. */
const DEADLINE_MS = 3_600_000

/**
 * Orders a user of its own for each instance of an earlier version, which restarts it: standbys first, one after another,
 * so that of a cluster never two are away at once. An instance where that fails goes on as it is, and is named. Run again,
 * it goes on with those that are left.
 */
export async function separateInstances(
  home: Home,
  installation: Installation,
  report: StepReport,
  progress: Progress,
): Promise<void> {
  if (installation.users === null) return
  const client = createConsoleClient(home, installation)
  const instances = await waitForReports(client, installation)
  const shared = instances
    .filter(({ user }) => user?.separable && !user.own)
    .sort((a, b) => Number(a.cluster.memberRole === 'primary') - Number(b.cluster.memberRole === 'primary'))
  for (const { name, instanceId, openOperation } of shared) {
    report.now(`${name} gets a user of its own`)
    try {
      const operationId =
        // begun by a run that was killed
        openOperation?.kind === 'separate-instance'
          ? openOperation.operationId
          : (await client.trpc.instance.separate.mutate({ instanceId })).operationId
      await waitForOperation(client, operationId, { deadlineMs: DEADLINE_MS, show: false })
      progress.say(`instance "${name}" runs as a user of its own`)
    } catch (error) {
      const { fault } = error instanceof FaultError ? error : consoleFault(error)
      progress.say(
        `instance "${name}" still shares its user with others; "./floe instance separate ${name}" tries again\n${formatFault(fault)}`,
      )
    }
  }
}
