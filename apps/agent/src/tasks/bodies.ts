import type { TaskKind } from '@floe/agent-contract'
import { changeSettings } from './change-settings'
import { createInstance } from './create-instance'
import { deleteInstance } from './delete-instance'
import { reloadInstance } from './reload-instance'
import { restartInstance } from './restart-instance'
import { startInstance } from './start-instance'
import { stopInstance } from './stop-instance'
import type { TaskBody } from './task'

/** Every task this agent can carry out. */
export const taskBodies: { [K in TaskKind]: TaskBody<K> } = {
  'create-instance': createInstance,
  'start-instance': startInstance,
  'stop-instance': stopInstance,
  'restart-instance': restartInstance,
  'reload-instance': reloadInstance,
  'delete-instance': deleteInstance,
  'change-settings': changeSettings,
}
