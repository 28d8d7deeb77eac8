import { viewerProcedure } from '../../procedures'
import { RoleList, RoleListInput } from './role.types'

/** Database roles of an instance at this moment; a probe, within 3 s. */
export const list = viewerProcedure
  .input(RoleListInput)
  .output(RoleList)
  .query(({ ctx, input }) =>
    ctx.ports.agents.probe(input.instanceId, (trpc) => trpc.databaseRole.list.query(input)),
  )
