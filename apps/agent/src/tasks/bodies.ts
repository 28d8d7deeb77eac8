import type { TaskKind } from '@floe/agent-contract'
import { adoptInstance } from './instance/adopt-instance'
import { createInstance } from './instance/create-instance'
import { deleteInstance } from './instance/delete-instance'
import { reindexDatabase } from './instance/reindex-database'
import { reloadInstance } from './instance/reload-instance'
import { requireTls } from './instance/require-tls'
import { restartInstance } from './instance/restart-instance'
import { separateInstance } from './instance/separate-instance'
import { startInstance } from './instance/start-instance'
import { stopInstance } from './instance/stop-instance'
import { admitRoles, prepareRole, replicateAs, retireRoles } from './member-role/replicate-as'
import {
  admitPageRepair,
  preparePageRepair,
  setPageRepairSources,
} from './page-repair/set-page-repair-sources'
import { checkpointInstance, demoteInstance, fenceInstance, restorePrimary } from './primary/demote-instance'
import { promoteInstance, setCommitMode, setSynchronous } from './primary/promote-instance'
import { keepPrimaryTold, setCommitFloor } from './primary/set-commit-floor'
import type { TaskBody } from './runner/task'
import { changeSettings } from './settings/change-settings'
import { awaitSettings, checkSettings, confirmSettings } from './settings/confirm-settings'
import { resolveDrift } from './settings/resolve-drift'
import { tryNewSettings, trySettings } from './settings/try-settings'
import { admitStandby, dismissStandby } from './standby/admit-standby'
import { cloneStandby, forgetStandby } from './standby/clone-standby'
import { followUpstream, isolateStandby, repointStandby } from './standby/follow-upstream'
import { dropAside, keepAside } from './standby/keep-aside'
import { prepareStandby } from './standby/prepare-standby'
import { rewindInstance } from './standby/rewind-instance'

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
