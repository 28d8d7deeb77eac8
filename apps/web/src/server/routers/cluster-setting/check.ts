import {
  type ClusterMember,
  type ClusterObserved,
  clusterSettingBlockers,
  clusterSettingFaults,
  FaultError,
  type MemberCheck,
  type MemberSettings,
  planSettingPhases,
  type SettingPhase,
  toFault,
  waitsForStandbys,
} from '@floe/domain'
import type { Context } from '../../context'
import { operatorProcedure } from '../../procedures'
import { requireCluster } from '../cluster/find'
import { forAll, wayBack } from './changes'
import { ClusterSettingCheck, ClusterSettingCheckInput } from './cluster-setting.types'

/**
 * What changes across a cluster would do, said by every member's own binary, the order in which members would take them,
 * and what that means for clients. Probes; nothing is changed. Operators only: it starts throw-away engines.
 */
export const check = operatorProcedure
  .input(ClusterSettingCheckInput)
  .output(ClusterSettingCheck)
  .query(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const cluster = await requireCluster(pool, input)
    const asked =
      'changes' in input
        ? forAll(cluster, input.changes)
        : (await wayBack(pool, cluster, input.stateId)).members
    // a host tries one start at a time: its members are asked one after the other, so that each has its 3 s
    const turns = new Map<string, Promise<unknown>>()
    const members = await Promise.all(
      cluster.members.map(async (m) => {
        const before = turns.get(m.hostId)
        const own = (async () => {
          await before
          return ask(ctx, m, asked)
        })()
        turns.set(m.hostId, own)
        return { instanceId: m.instanceId, name: m.name, memberRole: m.memberRole, ...(await own) }
      }),
    )
    const checks = members.map(
      (m): MemberCheck => ({
        instanceId: m.instanceId,
        name: m.name,
        primary: m.instanceId === cluster.primaryInstanceId,
        changes: asked.find((a) => a.instanceId === m.instanceId)?.changes ?? [],
        checked: m.results.map((r) => ({
          name: r.name,
          impact: r.impact,
          oldNumber: r.oldNumber ?? null,
          newNumber: r.newNumber ?? null,
        })),
      }),
    )
    const refused = members.flatMap((m) => [
      ...(m.fault ? [m.fault] : []),
      ...m.results.flatMap((r) => (r.fault ? [r.fault] : [])),
    ])
    const phases = planSettingPhases(checks)
    return {
      members,
      phases,
      faults: unique([
        ...clusterSettingBlockers(cluster, asked),
        ...refused,
        ...clusterSettingFaults(checks, true),
      ]),
      notes: notesOn(cluster, phases),
    }
  })

/** A trial start on a busy host may take longer than a probe may: once more, then it is said. */
async function ask(ctx: Context, m: ClusterMember, asked: readonly MemberSettings[]) {
  const first = await askOnce(ctx, m, asked)
  return first.fault?.code === 'agent.unreachable' ? askOnce(ctx, m, asked) : first
}

async function askOnce(ctx: Context, m: ClusterMember, asked: readonly MemberSettings[]) {
  const changes = asked.find((a) => a.instanceId === m.instanceId)?.changes ?? []
  try {
    const { results } = await ctx.ports.agents.probe(m.instanceId, (trpc) =>
      trpc.setting.check.query({ instanceId: m.instanceId, changes, acrossCluster: true }),
    )
    return { fault: null, results }
  } catch (error) {
    if (!(error instanceof FaultError)) throw error
    return { fault: toFault(error), results: [] }
  }
}

const unique = <T extends { code: string; message: string; detail?: string | null | undefined }>(
  faults: T[],
): T[] => [...new Map(faults.map((f) => [`${f.code} ${f.message} ${f.detail ?? ''}`, f])).values()]

/** What a restart of members means for those who use them. */
function notesOn(cluster: ClusterObserved, phases: readonly SettingPhase[]): string[] {
  const turns = phases
    .flatMap((p) => p.members.map((m) => ({ phase: p.phase, ...m })))
    .filter((m) => m.restart)
  const notes: string[] = []
  if (turns.some((t) => t.phase === 'primary'))
    notes.push('The primary is restarted: its connections end, and nobody can write for that moment.')
  const standbys = [...new Set(turns.filter((t) => t.phase !== 'primary').map((t) => t.name))]
  if (standbys.length > 0)
    notes.push(
      `${standbys.length === 1 ? `Standby ${standbys[0]} is` : `Standbys ${standbys.join(', ')} are`} restarted${
        standbys.length === 1 ? '' : ', one after the other'
      }: connections there end.`,
    )
  const { synchronous } = cluster
  const listed = synchronous?.instanceIds.filter((id) => id !== cluster.primaryInstanceId).length ?? 0
  if (
    standbys.length > 0 &&
    synchronous &&
    waitsForStandbys(cluster.commitMode) &&
    synchronous.count >= listed
  )
    notes.push('Commits wait while a synchronous standby restarts: none can stand in for it.')
  return notes
}
