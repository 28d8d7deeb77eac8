import {
  type ClusterObserved,
  clusterSettingBlockers,
  clusterSettingFaults,
  type Fault,
  fault,
  type MemberCheck,
  ofWholeCluster,
  planSettingPhases,
  type SettingPhase,
  waitsForStandbys,
} from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { checkSettings } from '../../setting-checks'
import { forAll, memberOf, readScope } from './scope'
import { SettingCheck, SettingCheckInput, SettingCheckResult, ShownCheckResult } from './setting.types'
import { wayBack } from './way-back'

/**
 * What changes, or a roll-back, would do: said by every member's own binary, with the order in which members would take
 * them and what that means for clients. An engine may be started on every member's host: a task, though nothing is changed.
 * What would be refused when it is asked for is refused here, too.
 */
export const check = operatorProcedure
  .input(SettingCheckInput)
  .output(SettingCheck)
  .mutation(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const { scope } = input
    const named = await readScope(pool, scope)
    const { cluster, instance } = named
    if (instance?.deletedAt) throw fault('instance.not_found', `instance "${instance.name}" was deleted`)
    const restart = cluster !== null && ('revisionId' in input || input.restart)
    const asked =
      'changes' in input
        ? forAll(named, input.changes)
        : (await wayBack(pool, scope, named, input.revisionId)).members
    const changesOf = (id: string) => asked.find((a) => a.instanceId === id)?.changes ?? []
    const answers = await checkSettings(
      ctx,
      named.members.map(({ instanceId, hostId }) => ({
        instanceId,
        hostId,
        changes: changesOf(instanceId),
        acrossCluster: cluster !== null,
      })),
      cluster
        ? { action: 'setting.check_on_cluster', objectKind: 'cluster', objectId: cluster.clusterId }
        : { action: 'setting.check', objectKind: 'instance', objectId: named.leaderId },
    )
    const members = named.members.map((m, i) => ({
      ...memberOf(m),
      fault: answers[i]?.fault ?? null,
      results: SettingCheckResult.array()
        .parse(answers[i]?.results ?? [])
        .map((r) => ({ ...r, fault: (instance && ofWholeCluster([r.name], instance.cluster)) ?? r.fault })),
    }))
    const checks = members.map(
      (m): MemberCheck => ({
        instanceId: m.instanceId,
        name: m.name,
        primary: m.instanceId === named.leaderId,
        changes: changesOf(m.instanceId),
        checked: m.results.map((r) => ({
          name: r.name,
          impact: r.impact,
          oldNumber: r.oldNumber ?? null,
          newNumber: r.newNumber ?? null,
        })),
      }),
    )
    const phases = planSettingPhases(checks).map(({ phase, members: turns }) => ({
      phase,
      members: turns.map((t) => ({ ...t, restart: t.restart && restart })),
    }))
    return {
      members: members.map((m) => ({ ...m, results: ShownCheckResult.array().parse(m.results) })),
      phases,
      faults: unique([
        ...(cluster ? clusterSettingBlockers(cluster, asked) : []),
        ...members.flatMap((m) => m.fault ?? []),
        ...saidByMember(members, (r) => r.fault),
        ...(cluster ? clusterSettingFaults(checks, restart) : []),
      ]),
      warnings: unique(saidByMember(members, (r) => r.warning)),
      notes: [...(cluster ? notesOn(cluster, phases) : []), ...waitingNote(checks, restart)],
    }
  })

/** What members say of changes, with the member's name where not all that answered say it. */
function saidByMember<R>(
  members: readonly { name: string; results: readonly R[] }[],
  of: (result: R) => Fault | null | undefined,
): Fault[] {
  const answered = members.filter((m) => m.results.length > 0)
  const said = answered.map((m) => ({ name: m.name, faults: m.results.flatMap((r) => of(r) ?? []) }))
  const bySome = (fault: Fault) =>
    said.some(({ faults }) => faults.every((f) => f.code !== fault.code || f.message !== fault.message))
  return said.flatMap(({ name, faults }) =>
    faults.map((f) => (bySome(f) ? { ...f, message: `member "${name}": ${f.message}` } : f)),
  )
}

const unique = (faults: Fault[]): Fault[] => [
  ...new Map(faults.map((f) => [`${f.code} ${f.message} ${f.detail ?? ''}`, f])).values(),
]

/** What is written and not in force until a restart that does not belong to the change. */
function waitingNote(checks: readonly MemberCheck[], restart: boolean): string[] {
  const waits = !restart && checks.some((m) => m.checked.some((c) => c.impact === 'restart'))
  return waits
    ? [
        'What needs a restart is written now and comes into force with the next one; nothing is restarted by this.',
      ]
    : []
}

/** What a restart of members means for those who use them. */
function notesOn(
  cluster: ClusterObserved,
  phases: readonly Pick<SettingPhase, 'phase' | 'members'>[],
): string[] {
  const turns = phases
    .flatMap((p) => p.members.map((m) => ({ phase: p.phase, ...m })))
    .filter((m) => m.restart)
  const notes: string[] = []
  if (turns.some((t) => t.phase === 'primary'))
    notes.push(
      `The ${cluster.members.length > 1 ? 'primary' : 'instance'} is restarted: its connections end, and nobody can write for that moment.`,
    )
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
