import { DatabaseRole, InstanceId, RoleName } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

export const RoleListInput = z.object({
  instanceId: InstanceId,
  /** Only the role of this name, exactly; left out, all but PostgreSQL's predefined ones. */
  name: RoleName.optional(),
})
export const RoleList = z.object({
  roles: z.array(DatabaseRole),
  /** There are more than are listed. */
  more: z.boolean(),
  observedAt: z.number(),
})
export type RoleList = z.infer<typeof RoleList>

export const RoleDropInput = z.object({
  instanceId: InstanceId,
  idempotencyKey: IdempotencyKey.optional(),
  role: RoleName,
  /** Typed by the person; must equal the name of the role. */
  confirmRole: z.string(),
})
