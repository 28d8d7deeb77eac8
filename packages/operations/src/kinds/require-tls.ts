import { memberOf } from '../instance-control'
import { defineOperation, next, wait } from '../step'
import { tasksStep } from '../tasks-step'

/** A report is renewed as soon as the agent has seen the rules; one that does not come is said and left. */
const SEEN_PATIENCE_MS = 15_000

/**
 * Clients on other hosts come in over TLS only. On every member that runs: each has a pg_hba.conf of its own, and any of
 * them may be the primary tomorrow. A member that is away keeps its warning and can be asked later.
 */
export const requireTls = defineOperation('require-tls', {
  retryAfresh: true,
  plan: () => [
    { name: 'require', title: 'Require TLS from clients on other hosts' },
    { name: 'observe', title: 'Wait until it is in force' },
  ],
  steps: {
    require: tasksStep({
      deadlineMs: 60_000,
      tasks: ({ input }, cluster) =>
        cluster.members
          .filter(
            (m) =>
              m.instanceId === input.instanceId ||
              (m.hostState === 'online' && m.state === 'running' && m.memberRole !== 'fenced'),
          )
          .map((m) => ({
            id: m.name,
            hostId: m.hostId,
            hostName: m.hostName,
            task: { kind: 'require-tls', instanceId: m.instanceId },
          })),
      describe: ({ id }, fault) => ({ ...fault, message: `instance "${id}": ${fault.message}` }),
      result: (results) => ({
        sessionsWithoutTls: Object.values(results).reduce<number>(
          (sum, r) => sum + ((r as { sessionsWithoutTls?: number }).sessionsWithoutTls ?? 0),
          0,
        ),
      }),
    }),
    observe: {
      deadlineMs: SEEN_PATIENCE_MS + 30_000,
      async run(context) {
        const member = memberOf(await context.readCluster(), context.input.instanceId)
        const open = Number(context.results.require?.sessionsWithoutTls ?? 0)
        const log =
          open > 0
            ? [
                {
                  text: `${open} ${open === 1 ? 'session' : 'sessions'} opened without TLS before will continue`,
                },
              ]
            : []
        if (member.remoteAccess?.withoutTls === false) return next({}, { log })
        const waited = context.now.getTime() - context.step.startedAt.getTime()
        if (context.cancelAskedAt || waited > SEEN_PATIENCE_MS)
          return next({ notSeen: true }, { log: [...log, { text: 'not reported yet' }] })
        return wait(100, 'waiting until it is reported')
      },
    },
  },
})
