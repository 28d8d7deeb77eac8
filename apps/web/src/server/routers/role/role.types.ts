import { DatabaseRole, InstanceId, RoleName, roleToChange, roleToCreate, ScramVerifier } from '@floe/domain'
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

/** What every change of roles is asked with. */
const ofPrimary = { instanceId: InstanceId, idempotencyKey: IdempotencyKey.optional() }

export const RoleCreateInput = z.object({
  ...ofPrimary,
  ...roleToCreate,
  /** PostgreSQL's verifier of its password, made by the caller; left out, it has none. */
  passwordVerifier: ScramVerifier.nullable().default(null),
})

export const RoleChangeInput = z.object({
  ...ofPrimary,
  ...roleToChange,
  /** null takes the password away; left out, it stays. */
  passwordVerifier: ScramVerifier.nullable().optional(),
})

export const RoleDropInput = z.object({
  ...ofPrimary,
  role: RoleName,
  /** Typed by the person; must equal the name of the role. */
  confirmRole: z.string(),
})
