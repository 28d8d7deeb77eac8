import { findInstance, newestSeq, readClusterOf, readSparklines, showInstance } from '@floe/db'
import { fault } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { protectionView } from '../protection/protection.views'
import { InstanceDetail, InstanceShowInput } from './instance.types'
import { instanceDetail } from './instance.views'

/** One instance by id or name, as last observed. Throws `instance.not_found`. */
export const show = viewerProcedure
  .input(InstanceShowInput)
  .output(InstanceDetail)
  .query(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const instance =
      'instanceId' in input
        ? await showInstance(pool, input.instanceId)
        : await findInstance(pool, input.name)
    if (!instance || instance.deletedAt)
      throw fault(
        'instance.not_found',
        `instance "${'name' in input ? input.name : input.instanceId}" does not exist`,
      )
    const { instanceId } = instance
    const [sparklines, newest, cluster] = await Promise.all([
      readSparklines(pool, { instanceIds: [instanceId] }),
      newestSeq(pool, instanceId),
      readClusterOf(pool, instanceId),
    ])
    const member = cluster?.members.find((m) => m.instanceId === instanceId)
    const seen = member?.protection ?? null
    return {
      ...instanceDetail(instance, sparklines[0]?.points ?? [], newest, member?.remoteAccess ?? null),
      protection: protectionView(cluster, instanceId, seen),
      flashback: member?.flashback ?? null,
      sharedServer: member?.sharedServer ?? null,
    }
  })
