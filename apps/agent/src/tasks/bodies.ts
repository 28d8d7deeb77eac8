import type { TaskKind } from '@floe/agent-contract'
import { admitStandby, dismissStandby } from './admit-standby'
import { adoptInstance } from './adopt-instance'
import { changeSettings } from './change-settings'
import { cloneStandby, forgetStandby } from './clone-standby'
import { awaitSettings, checkSettings, confirmSettings } from './cluster-settings'
import { keepPrimaryTold, setCommitFloor } from './commit-floor'
import { createInstance } from './create-instance'
import { deleteInstance } from './delete-instance'
import { checkpointInstance, demoteInstance, fenceInstance, restorePrimary } from './demote-instance'
import { followUpstream, isolateStandby, repointStandby } from './follow-upstream'
import { dropAside, keepAside } from './keep-aside'
import { admitPageRepair, preparePageRepair, setPageRepairSources } from './page-repair'
import { prepareStandby } from './prepare-standby'
import { promoteInstance, setCommitMode, setSynchronous } from './promote-instance'
import { reindexDatabase } from './reindex-database'
import { reloadInstance } from './reload-instance'
import { admitRoles, prepareRole, replicateAs, retireRoles } from './renew-role'
import { requireTls } from './require-tls'
import { resolveDrift } from './resolve-drift'
import { restartInstance } from './restart-instance'
import { rewindInstance } from './rewind-instance'
import { separateInstance } from './separate-instance'
import { startInstance } from './start-instance'
import { stopInstance } from './stop-instance'
import type { TaskBody } from './task'
import { tryNewSettings, trySettings } from './try-settings'

/** Every task this agent can carry out. */
export const taskBodies: { [K in TaskKind]: TaskBody<K> } = {
  'create-instance': createInstance,
  'start-instance': startInstance,
  'stop-instance': stopInstance,
  'restart-instance': restartInstance,
  'reload-instance': reloadInstance,
  'adopt-instance': adoptInstance,
  'delete-instance': deleteInstance,
  'separate-instance': separateInstance,
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
  'keep-primary': keepPrimaryTold,
  'set-commit-floor': setCommitFloor,
  'prepare-page-repair': preparePageRepair,
  'admit-page-repair': admitPageRepair,
  'set-page-repair-sources': setPageRepairSources,
  'prepare-role': prepareRole,
  'admit-roles': admitRoles,
  'replicate-as': replicateAs,
  'retire-roles': retireRoles,
  'reindex-database': reindexDatabase,
  'require-tls': requireTls,
  'resolve-drift': resolveDrift,
  'check-settings': checkSettings,
  'try-settings': trySettings,
  'try-new-settings': tryNewSettings,
  'await-settings': awaitSettings,
  'confirm-settings': confirmSettings,
}
