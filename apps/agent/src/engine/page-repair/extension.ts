import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import type { Instance } from '../instance'

/** Whether the engine of an instance has the extension page_repair. */
export const hasPageRepair = ({ enginePrefix }: Pick<Instance, 'enginePrefix'>): boolean =>
  existsSync(join(enginePrefix, 'share/postgresql/extension/page_repair.control'))

/** The refusal of what needs it. */
export const missingPageRepair = (instance: Instance) =>
  fault('page_repair.missing', `the engine of instance "${instance.registered.name}" has no page_repair`, {
    hint: 'Update the engine by "./floe up", then restart the instance.',
  })
