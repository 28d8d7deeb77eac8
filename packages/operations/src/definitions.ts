import type { OperationKind } from '@floe/domain'
import { adoptInstance } from './adopt-instance/adopt-instance'
import { changeAutomatic } from './change-automatic/change-automatic'
import { changeClusterSettings } from './change-cluster-settings/change-cluster-settings'
import { changeCommitMode } from './change-commit-mode/change-commit-mode'
import { changePageRepair } from './change-page-repair/change-page-repair'
import { changeSettings } from './change-settings/change-settings'
import { changeSynchronous } from './change-synchronous/change-synchronous'
import { createInstance } from './create-instance/create-instance'
import { createStandby } from './create-standby/create-standby'
import { deleteInstance } from './delete-instance/delete-instance'
import { dropKeptAside } from './drop-kept-aside/drop-kept-aside'
import { failoverCluster } from './failover-cluster/failover-cluster'
import { fenceInstance } from './fence-instance/fence-instance'
import { promoteStandby } from './promote-standby/promote-standby'
import { rejoinStandby } from './rejoin-standby/rejoin-standby'
import { reloadInstance } from './reload-instance/reload-instance'
import { removeStandby } from './remove-standby/remove-standby'
import { renewRoles } from './renew-roles/renew-roles'
import { requireTls } from './require-tls/require-tls'
import { resolveDrift } from './resolve-drift/resolve-drift'
import { restartInstance } from './restart-instance/restart-instance'
import { separateInstance } from './separate-instance/separate-instance'
import { startInstance } from './start-instance/start-instance'
import type { OperationDefinition } from './step'
import { stopInstance } from './stop-instance/stop-instance'
import { switchoverCluster } from './switchover-cluster/switchover-cluster'

/** Every operation Floe can carry out. The type makes a kind without a definition a compile error. */
const definitions = {
  'create-instance': createInstance,
  'start-instance': startInstance,
  'stop-instance': stopInstance,
  'restart-instance': restartInstance,
  'reload-instance': reloadInstance,
  'delete-instance': deleteInstance,
  'separate-instance': separateInstance,
  'adopt-instance': adoptInstance,
  'change-settings': changeSettings,
  'create-standby': createStandby,
  'remove-standby': removeStandby,
  'rejoin-standby': rejoinStandby,
  'drop-kept-aside': dropKeptAside,
  'promote-standby': promoteStandby,
  'switchover-cluster': switchoverCluster,
  'failover-cluster': failoverCluster,
  'change-synchronous': changeSynchronous,
  'change-automatic': changeAutomatic,
  'change-commit-mode': changeCommitMode,
  'change-cluster-settings': changeClusterSettings,
  'change-page-repair': changePageRepair,
  'renew-roles': renewRoles,
  'require-tls': requireTls,
  'fence-instance': fenceInstance,
  'resolve-drift': resolveDrift,
} satisfies { [K in OperationKind]: { kind: K } }

/** The definition of a kind, with the kind's own types folded to what the runner needs. */
export function operationDefinition(kind: OperationKind): OperationDefinition<OperationKind> {
  return definitions[kind] as unknown as OperationDefinition<OperationKind>
}
