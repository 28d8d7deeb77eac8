import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { fault } from '@floe/domain'
import type { Instance } from '../../engine/instance'
import { choosePort } from '../../host/ports'
import type { TaskContext, TaskOf } from '../runner/task'

/** Port and password are decided once and kept before anything is made with them. */
export async function registerInstance(
  task: Pick<TaskOf<'create-instance'>, 'instanceId' | 'name'>,
  context: TaskContext,
  expected: 'creating',
): Promise<Instance> {
  const { installation, registry } = context
  if (!existsSync(`${installation.enginePrefix}/bin/postgres`))
    throw fault('engine.missing', `no engine in "${installation.enginePrefix}"`, {
      hint: 'Run "./floe up" on this host.',
    })
  const owned = new Set(registry.list().map((i) => i.port))
  const user = await context.users?.claim(task.instanceId)
  return context.instances.add({
    version: 1,
    instanceId: task.instanceId,
    name: task.name,
    port: await choosePort(installation.instancePorts, owned),
    enginePrefix: installation.enginePrefix,
    ...(user ? { user } : {}),
    expected,
    agentPassword: randomBytes(24).toString('base64url'),
    createdAt: Date.now(),
  })
}
