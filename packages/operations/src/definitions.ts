import type { OperationKind } from '@floe/domain'
import { adoptInstance } from './kinds/adopt-instance'
import { changeAutomatic } from './kinds/change-automatic'
import { changeClusterSettings } from './kinds/change-cluster-settings'
import { changeCommitMode } from './kinds/change-commit-mode'
import { changeDatabaseRole } from './kinds/change-database-role'
import { changePageRepair } from './kinds/change-page-repair'
import { changeSettings } from './kinds/change-settings'
import { changeSynchronous } from './kinds/change-synchronous'
import { compareFlashback } from './kinds/compare-flashback'
import { createDatabaseRole } from './kinds/create-database-role'
import { createInstance } from './kinds/create-instance'
import { createStandby } from './kinds/create-standby'
import { deleteInstance } from './kinds/delete-instance'
import { dropDatabaseRole } from './kinds/drop-database-role'
import { dropFlashback } from './kinds/drop-flashback'
import { dropKeptAside } from './kinds/drop-kept-aside'
import { exportFlashback } from './kinds/export-flashback'
import { failoverCluster } from './kinds/failover-cluster'
import { fenceInstance } from './kinds/fence-instance'
import { flashbackDroppedTable } from './kinds/flashback-dropped-table'
import { flashbackTable } from './kinds/flashback-table'
import { limitInstance } from './kinds/limit-instance'
import { mergeFlashback } from './kinds/merge-flashback'
import { prepareFlashback } from './kinds/prepare-flashback'
import { previewFlashback } from './kinds/preview-flashback'
import { promoteStandby } from './kinds/promote-standby'
import { recoverCluster } from './kinds/recover-cluster'
import { reindexDatabase } from './kinds/reindex-database'
import { rejoinStandby } from './kinds/rejoin-standby'
import { reloadInstance } from './kinds/reload-instance'
import { removeStandby } from './kinds/remove-standby'
import { renewRoles } from './kinds/renew-roles'
import { requireTls } from './kinds/require-tls'
import { resolveDrift } from './kinds/resolve-drift'
import { restartInstance } from './kinds/restart-instance'
import { restoreTable } from './kinds/restore-table'
import { separateInstance } from './kinds/separate-instance'
import { setStallLength } from './kinds/set-stall-length'
import { startInstance } from './kinds/start-instance'
import { stopInstance } from './kinds/stop-instance'
import { swapFlashback } from './kinds/swap-flashback'
import { switchoverCluster } from './kinds/switchover-cluster'
import { upgradeMembers } from './kinds/upgrade-members'
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
  'limit-instance': limitInstance,
  'set-stall-length': setStallLength,
  'create-standby': createStandby,
  'remove-standby': removeStandby,
  'rejoin-standby': rejoinStandby,
  'drop-kept-aside': dropKeptAside,
  'promote-standby': promoteStandby,
  'switchover-cluster': switchoverCluster,
  'failover-cluster': failoverCluster,
  'recover-cluster': recoverCluster,
  'change-synchronous': changeSynchronous,
  'change-automatic': changeAutomatic,
  'change-commit-mode': changeCommitMode,
  'change-cluster-settings': changeClusterSettings,
  'change-page-repair': changePageRepair,
  'renew-roles': renewRoles,
  'upgrade-members': upgradeMembers,
  'reindex-database': reindexDatabase,
  'create-database-role': createDatabaseRole,
  'change-database-role': changeDatabaseRole,
  'drop-database-role': dropDatabaseRole,
  'restore-table': restoreTable,
  'require-tls': requireTls,
  'prepare-flashback': prepareFlashback,
  'preview-flashback': previewFlashback,
  'flashback-table': flashbackTable,
  'flashback-dropped-table': flashbackDroppedTable,
  'compare-flashback': compareFlashback,
  'merge-flashback': mergeFlashback,
  'swap-flashback': swapFlashback,
  'drop-flashback': dropFlashback,
  'export-flashback': exportFlashback,
  'fence-instance': fenceInstance,
  'resolve-drift': resolveDrift,
} satisfies { [K in OperationKind]: { kind: K } }

/** The definition of a kind, with the kind's own types folded to what the runner needs. */
export function operationDefinition(kind: OperationKind): OperationDefinition<OperationKind> {
  return definitions[kind] as unknown as OperationDefinition<OperationKind>
}
