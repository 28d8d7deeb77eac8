import { type ClusterObserved, memberOfSource, primaryOf, repairSourcesOf } from '@floe/domain'
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

/**
 * Who gives the members of a cluster torn pages back. Each member asks as a role of its own, whose password stays on its
 * host; on the primary each of these roles may read pages and do nothing else.
 */
export const changePageRepair = defineOperation('change-page-repair', {
  plan: () => [
    { name: 'prepare', title: 'Give the members passwords to ask with' },
    { name: 'admit', title: 'Let their roles, and no others, read pages' },
    { name: 'sources', title: 'Name the sources on every member' },
    { name: 'observe', title: 'See the sources healthy' },
  ],
  steps: {
    prepare: tasksStep({
      deadlineMs: 60_000,
      tasks: (context, cluster) => prepareRepair(wanted(context, cluster), null),
      tolerate: (_task, fault) => fault.code === 'agent.unreachable',
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
      tolerate: (_task, fault) => fault.code === 'agent.unreachable',
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
