import type { OperationKind } from '@floe/domain'
import { adoptInstance } from './kinds/adopt-instance'
import { changeAutomatic } from './kinds/change-automatic'
import { changeClusterSettings } from './kinds/change-cluster-settings'
import { changeCommitMode } from './kinds/change-commit-mode'
import { changePageRepair } from './kinds/change-page-repair'
import { changeSettings } from './kinds/change-settings'
import { changeSynchronous } from './kinds/change-synchronous'
import { createInstance } from './kinds/create-instance'
import { createStandby } from './kinds/create-standby'
import { deleteInstance } from './kinds/delete-instance'
import { dropKeptAside } from './kinds/drop-kept-aside'
import { failoverCluster } from './kinds/failover-cluster'
import { fenceInstance } from './kinds/fence-instance'
import { promoteStandby } from './kinds/promote-standby'
import { reindexDatabase } from './kinds/reindex-database'
import { rejoinStandby } from './kinds/rejoin-standby'
import { reloadInstance } from './kinds/reload-instance'
import { removeStandby } from './kinds/remove-standby'
import { renewRoles } from './kinds/renew-roles'
import { requireTls } from './kinds/require-tls'
import { resolveDrift } from './kinds/resolve-drift'
import { restartInstance } from './kinds/restart-instance'
import { separateInstance } from './kinds/separate-instance'
import { startInstance } from './kinds/start-instance'
import { stopInstance } from './kinds/stop-instance'
import { switchoverCluster } from './kinds/switchover-cluster'
import type { OperationDefinition } from './step'

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
  'reindex-database': reindexDatabase,
  'require-tls': requireTls,
  'fence-instance': fenceInstance,
  'resolve-drift': resolveDrift,
} satisfies { [K in OperationKind]: { kind: K } }

/** The definition of a kind, with the kind's own types folded to what the runner needs. */
export function operationDefinition(kind: OperationKind): OperationDefinition<OperationKind> {
  return definitions[kind] as unknown as OperationDefinition<OperationKind>
}
