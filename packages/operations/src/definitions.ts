import type { OperationKind } from '@floe/domain'
import { changeSettings } from './change-settings/change-settings'
import { createInstance } from './create-instance/create-instance'
import { deleteInstance } from './delete-instance/delete-instance'
import { reloadInstance } from './reload-instance/reload-instance'
import { restartInstance } from './restart-instance/restart-instance'
import { startInstance } from './start-instance/start-instance'
import type { OperationDefinition } from './step'
import { stopInstance } from './stop-instance/stop-instance'

/** Every operation Floe can carry out. The type makes a kind without a definition a compile error. */
const definitions = {
  'create-instance': createInstance,
  'start-instance': startInstance,
  'stop-instance': stopInstance,
  'restart-instance': restartInstance,
  'reload-instance': reloadInstance,
  'delete-instance': deleteInstance,
  'change-settings': changeSettings,
} satisfies { [K in OperationKind]: { kind: K } }

/** The definition of a kind, with the kind's own types folded to what the runner needs. */
export function operationDefinition(kind: OperationKind): OperationDefinition<OperationKind> {
  return definitions[kind] as unknown as OperationDefinition<OperationKind>
}
