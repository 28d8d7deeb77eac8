import { changeDatabaseRole } from './database-role/change-database-role'
import { createDatabaseRole } from './database-role/create-database-role'
import { dropDatabaseRole } from './database-role/drop-database-role'
import { compareFlashback } from './flashback/compare-flashback'
import { dropFlashback } from './flashback/drop-flashback'
import { exportFlashback } from './flashback/export-flashback'
import { flashbackDroppedTable } from './flashback/flashback-dropped-table'
import { flashbackTable } from './flashback/flashback-table'
import { mergeFlashback } from './flashback/merge-flashback'
import { prepareFlashback } from './flashback/prepare-flashback'
import { previewFlashback } from './flashback/preview-flashback'
import { restoreTable } from './flashback/restore-table'
import { swapFlashback } from './flashback/swap-flashback'
import { checkTheHost } from './host/check-host'
import { installPackages } from './host/install-packages'
import { receivePackage } from './host/receive-package'
import { adoptInstance } from './instance/adopt-instance'
import { checkpointInstance } from './instance/checkpoint-instance'
import { createInstance } from './instance/create-instance'
import { deleteInstance } from './instance/delete-instance'
import { fenceInstance } from './instance/fence-instance'
import { limitInstance } from './instance/limit-instance'
import { reindexDatabase } from './instance/reindex-database'
import { reloadInstance } from './instance/reload-instance'
import { requireTls } from './instance/require-tls'
import { restartInstance } from './instance/restart-instance'
import { separateInstance } from './instance/separate-instance'
import { setStallLength } from './instance/set-stall-length'
import { startInstance } from './instance/start-instance'
import { stopInstance } from './instance/stop-instance'
import { upgradeInstance } from './instance/upgrade-instance'
import { admitRoles } from './member-role/admit-roles'
import { prepareRole } from './member-role/prepare-role'
import { replicateAs } from './member-role/replicate-as'
import { retireRoles } from './member-role/retire-roles'
import { admitPageRepair } from './page-repair/admit-page-repair'
import { dropRestored } from './page-repair/drop-restored-pages'
import { listTorn } from './page-repair/list-torn'
import { preparePageRepair } from './page-repair/prepare-page-repair'
import { readCopies } from './page-repair/read-copies'
import { restorePages } from './page-repair/restore-pages'
import { setPageRepairSources } from './page-repair/set-page-repair-sources'
import { writeCopies } from './page-repair/write-copies'
import { demoteInstance } from './primary/demote-instance'
import { keepPrimaryTold } from './primary/keep-primary'
import { promoteInstance } from './primary/promote-instance'
import { restorePrimary } from './primary/restore-primary'
import { setCommitFloor } from './primary/set-commit-floor'
import { setCommitMode } from './primary/set-commit-mode'
import { setSynchronous } from './primary/set-synchronous'
import type { TaskBodies } from './runner/task'
import { awaitSettings } from './settings/await-settings'
import { changeSettings } from './settings/change-settings'
import { checkSettings } from './settings/check-settings'
import { confirmSettings } from './settings/confirm-settings'
import { resolveDrift } from './settings/resolve-drift'
import { tryNewSettings } from './settings/try-new-settings'
import { trySettings } from './settings/try-settings'
import { admitStandby } from './standby/admit-standby'
import { cloneStandby } from './standby/clone-standby'
import { dismissStandby } from './standby/dismiss-standby'
import { dropAside } from './standby/drop-kept-aside'
import { followUpstream } from './standby/follow-upstream'
import { forgetStandby } from './standby/forget-standby'
import { isolateStandby } from './standby/isolate-standby'
import { keepAside } from './standby/keep-aside'
import { prepareStandby } from './standby/prepare-standby'
import { repointStandby } from './standby/repoint-standby'
import { rewindInstance } from './standby/rewind-instance'

/** Every task this agent can carry out. */
export const taskBodies: TaskBodies = {
  'create-instance': createInstance,
  'start-instance': startInstance,
  'stop-instance': stopInstance,
  'restart-instance': restartInstance,
  'reload-instance': reloadInstance,
  'adopt-instance': adoptInstance,
  'delete-instance': deleteInstance,
  'separate-instance': separateInstance,
  'upgrade-instance': upgradeInstance,
  'change-settings': changeSettings,
  'prepare-standby': prepareStandby,
  'admit-standby': admitStandby,
  'dismiss-standby': dismissStandby,
  'clone-standby': cloneStandby,
  'forget-standby': forgetStandby,
  'keep-aside': keepAside,
  'drop-kept-aside': dropAside,
  'rewind-instance': rewindInstance,
  'checkpoint-instance': checkpointInstance,
  'demote-instance': demoteInstance,
  'restore-primary': restorePrimary,
  'fence-instance': fenceInstance,
  'follow-upstream': followUpstream,
  'isolate-standby': isolateStandby,
  'repoint-standby': repointStandby,
  'promote-instance': promoteInstance,
  'set-synchronous': setSynchronous,
  'set-commit-mode': setCommitMode,
  'limit-instance': limitInstance,
  'set-stall-length': setStallLength,
  'keep-primary': keepPrimaryTold,
  'set-commit-floor': setCommitFloor,
  'prepare-page-repair': preparePageRepair,
  'admit-page-repair': admitPageRepair,
  'set-page-repair-sources': setPageRepairSources,
  'list-torn': listTorn,
  'read-copies': readCopies,
  'write-copies': writeCopies,
  'restore-pages': restorePages,
  'drop-restored-pages': dropRestored,
  'prepare-role': prepareRole,
  'admit-roles': admitRoles,
  'replicate-as': replicateAs,
  'retire-roles': retireRoles,
  'reindex-database': reindexDatabase,
  'create-database-role': createDatabaseRole,
  'change-database-role': changeDatabaseRole,
  'drop-database-role': dropDatabaseRole,
  'prepare-flashback': prepareFlashback,
  'preview-flashback': previewFlashback,
  'compare-flashback': compareFlashback,
  'flashback-table': flashbackTable,
  'flashback-dropped-table': flashbackDroppedTable,
  'merge-flashback': mergeFlashback,
  'swap-flashback': swapFlashback,
  'drop-flashback': dropFlashback,
  'export-flashback': exportFlashback,
  'restore-table': restoreTable,
  'require-tls': requireTls,
  'resolve-drift': resolveDrift,
  'check-settings': checkSettings,
  'try-settings': trySettings,
  'try-new-settings': tryNewSettings,
  'check-host': checkTheHost,
  'receive-package': receivePackage,
  'install-packages': installPackages,
  'await-settings': awaitSettings,
  'confirm-settings': confirmSettings,
}
