import { type ClusterMember, type Fault, FaultError, isGrantable, whyRoleReserved } from '@floe/domain'
import { refuseStandby } from './guards'
import { memberOf } from './instance-control'
import type { Guarded, StepContext } from './step'

/** What the kinds that create, change and drop database roles have in common. */
type RoleKind = 'create-database-role' | 'change-database-role' | 'drop-database-role'

/** Roles are those of a whole cluster: made on its primary. Floe's own and predefined ones are not touched. */
export async function refuseRole(
  { input, instance, readCluster }: Pick<Guarded<RoleKind>, 'input' | 'instance' | 'readCluster'>,
  granted: readonly string[] = [],
): Promise<void> {
  const refusal =
    whyRoleReserved(input.role) ??
    granted
      .filter((name) => !isGrantable(name))
      .map((name) => whyRoleReserved(name))
      .find((found) => found !== null)
  if (refusal) throw new FaultError(refusal)
  await refuseStandby({ instance, readCluster })
}

/** How a step on roles is carried out: by the member that was named, while its host answers. */
export const onItsPrimary = {
  deadlineMs: 120_000,
  on: ({ input }: Pick<StepContext<RoleKind>, 'input'>, cluster: Parameters<typeof memberOf>[0]) =>
    memberOf(cluster, input.instanceId),
  silence: {
    afterMs: 20_000,
    fault: ({ name, hostName }: ClusterMember): Fault => ({
      code: 'agent.unreachable',
      message: `host "${hostName}" of instance "${name}" does not answer`,
      detail: 'The change of the role may still be made there.',
      hint: `Run "./floe role list ${name}" once the host answers.`,
    }),
  },
}
