import {
  type ClusterObserved,
  clusterSettingBlockers,
  clusterSettingFaults,
  type MemberCheck,
  planSettingPhases,
  type SettingPhase,
  waitsForStandbys,
} from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { checkSettings } from '../../setting-checks'
import { requireCluster } from '../cluster/find'
import { SettingCheckResult } from '../setting/check.types'
import { forAll, wayBack } from './changes'
import { ClusterSettingCheck, ClusterSettingCheckInput } from './cluster-setting.types'

/**
 * What changes across a cluster would do, said by every member's own binary, the order in which members would take them,
 * and what that means for clients. An engine is started on every member's host: a task, though nothing is changed.
 */
export const check = operatorProcedure
  .input(ClusterSettingCheckInput)
  .output(ClusterSettingCheck)
  .mutation(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const cluster = await requireCluster(pool, input)
    const asked =
      'changes' in input
        ? forAll(cluster, input.changes)
        : (await wayBack(pool, cluster, input.revisionId)).members
    const targets = cluster.members.map((m) => ({
      instanceId: m.instanceId,
      hostId: m.hostId,
      changes: asked.find((a) => a.instanceId === m.instanceId)?.changes ?? [],
      acrossCluster: true,
    }))
    const answers = await checkSettings(ctx, targets, {
      action: 'setting.check_on_cluster',
      objectKind: 'cluster',
      objectId: cluster.clusterId,
    })
    const members = cluster.members.map((m, i) => ({
      instanceId: m.instanceId,
      name: m.name,
      memberRole: m.memberRole,
      fault: answers[i]?.fault ?? null,
      results: SettingCheckResult.array().parse(answers[i]?.results ?? []),
    }))
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
