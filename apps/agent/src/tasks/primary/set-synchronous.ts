import { fault } from '@floe/domain'
import { readClusterSettings, writeClusterSettings } from '../../engine/cluster/member-files'
import { namesInForce, writeNames } from '../../engine/cluster/standby-names'
import { reload } from '../../engine/process/reload'
import type { TaskBody } from '../runner/task'

export const setSynchronous: TaskBody<'set-synchronous'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  return instance.connect(async (client) => {
    const before = readClusterSettings(instance.layout)
    const { rows } = await client.query<{ primary: boolean }>('select not pg_is_in_recovery() as primary')
    writeNames(instance, task.standbyNames, rows[0]?.primary === true ? 'primary' : 'standby')
    await reload(instance, client)
    const names = await namesInForce(client)
    if (names !== task.standbyNames) {
      writeClusterSettings(instance.layout, before, instance.user)
      await reload(instance, client)
      throw fault('setting.not_applied', 'the engine did not take setting "synchronous_standby_names"', {
        detail: `It is ${JSON.stringify(names)}, wanted is ${JSON.stringify(task.standbyNames)}.`,
        hint: 'A line in postgresql.auto.conf or on the command line wins over it.',
      })
    }
    context.log(names ? `commits wait for ${names}` : 'commits wait for no standby')
    return { standbyNames: names }
  })
}
