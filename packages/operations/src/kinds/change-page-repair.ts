import {
  type ClusterObserved,
  fault,
  memberOfSource,
  type PageRepair,
  primaryOf,
  repairSourcesOf,
} from '@floe/domain'
import { refuseStandby } from '../guards'
import { admitRepair, prepareRepair, setRepairSources } from '../page-repair'
import { defineOperation, next, type StepContext, wait } from '../step'
import { tasksStep } from '../tasks-step'

/** A source is asked each second; one that is not healthy after so long is left, and that is said. */
const HEALTHY_PATIENCE_MS = 20_000

type Context = StepContext<'change-page-repair'>

/** The cluster as it is to be. */
const wanted = ({ input }: Context, cluster: ClusterObserved): ClusterObserved => ({
  ...cluster,
  pageRepair: input.pageRepair,
})

/** Without page images a primary needs a source; taking the last one away would only have them written again. */
function refuseLastSource(cluster: ClusterObserved, pageRepair: PageRepair): void {
  const { protection } = primaryOf(cluster) ?? {}
  const { primaryInstanceId } = cluster
  if (!protection || protection.fullPageWrites || !protection.guard) return
  if (repairSourcesOf(cluster, primaryInstanceId).length === 0) return
  if (repairSourcesOf({ ...cluster, pageRepair }, primaryInstanceId).length > 0) return
  throw fault(
    'page_repair.last_source',
    'the primary runs with full_page_writes off and needs a page repair source',
    {
      detail: 'Without a source the guard would re-enable full-page images.',
      hint: 'Turn full_page_writes on first, or leave one standby as a source.',
    },
  )
}

/**
 * Who gives the members of a cluster torn pages back. Each member asks as a role of its own, whose password stays on its
 * host; on the primary each of these roles may read pages and do nothing else.
 */
export const changePageRepair = defineOperation('change-page-repair', {
  guard: async (asked) => {
    await refuseStandby(asked)
    const cluster = await asked.readCluster()
    const { pageRepair } = asked.input
    const known = new Set<string>(cluster?.members.map((m) => m.instanceId))
    for (const id of pageRepair.excluded)
      if (!known.has(id))
        throw fault('cluster.no_member', `instance ${id} is not a member of this cluster`, {
          hint: 'Name its members.',
        })
    if (cluster) refuseLastSource(cluster, pageRepair)
  },
  plan: () => [
    { name: 'prepare', title: 'Create passwords for the members’ roles' },
    { name: 'admit', title: 'Allow only these roles to read pages' },
    { name: 'sources', title: 'Set the sources on every member' },
    { name: 'observe', title: 'Wait until the sources are healthy' },
  ],
  steps: {
    prepare: tasksStep({
      deadlineMs: 60_000,
      tasks: (context, cluster) => prepareRepair(wanted(context, cluster), null),
      optional: (_task, fault) => fault.code === 'agent.unreachable',
    }),
    admit: tasksStep({
      deadlineMs: 60_000,
      tasks: (context, cluster) =>
        admitRepair(wanted(context, cluster), (context.results.prepare ?? {}) as never, null),
    }),
    sources: tasksStep({
      deadlineMs: 120_000,
      tasks: (context, cluster) =>
        setRepairSources(wanted(context, cluster), (context.results.prepare ?? {}) as never, null),
      optional: (_task, fault) => fault.code === 'agent.unreachable',
      records: (_results, { input }) => [
        { kind: 'cluster-page-repair', clusterId: input.clusterId, pageRepair: input.pageRepair },
      ],
    }),
    observe: {
      deadlineMs: HEALTHY_PATIENCE_MS + 30_000,
      async run(context) {
        const cluster = wanted(context, await context.readCluster())
        const primary = primaryOf(cluster)
        const names = repairSourcesOf(cluster, cluster.primaryInstanceId).map((m) => m.name)
        const seen = primary?.protection?.sources ?? []
        const healthy = seen.filter((s) => s.healthy).map((s) => memberOfSource(cluster, s.source)?.name)
        const missing = names.filter((name) => !healthy.includes(name))
        if (missing.length === 0 && seen.length === names.length) return next({ repairSources: names })
        const waited = context.now.getTime() - context.step.startedAt.getTime()
        if (context.cancelAskedAt || waited > HEALTHY_PATIENCE_MS)
          return next(
            { repairSources: names, notHealthy: missing },
            {
              log: missing.map((name) => {
                const why = seen.find((s) => memberOfSource(cluster, s.source)?.name === name)?.why
                return { text: `"${name}" is not healthy yet: ${why ?? 'it was not seen'}` }
              }),
            },
          )
        return wait(100, `waiting until the primary has found ${missing.join(', ') || 'no other'} healthy`)
      },
    },
  },
})
