import { createAccessControl } from 'better-auth/plugins/access'
import { adminAc, defaultStatements, ownerAc } from 'better-auth/plugins/organization/access'

/** What better-auth's own organisation endpoints ask; Floe's procedures ask for a role by rank (procedures.ts). */
export const accessControl = createAccessControl({
  ...defaultStatements,
  instance: ['read', 'change'],
} as const)

export const roles = {
  owner: accessControl.newRole({ ...ownerAc.statements, instance: ['read', 'change'] }),
  admin: accessControl.newRole({ ...adminAc.statements, instance: ['read', 'change'] }),
  operator: accessControl.newRole({ instance: ['read', 'change'] }),
  viewer: accessControl.newRole({ instance: ['read'] }),
}
