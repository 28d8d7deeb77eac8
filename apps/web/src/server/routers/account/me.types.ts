import { z } from 'zod'

export const AccountRole = z.enum(['viewer', 'operator', 'admin', 'owner'])
export type AccountRole = z.infer<typeof AccountRole>

export const Account = z.object({
  kind: z.enum(['user', 'token']),
  id: z.string(),
  name: z.string(),
  email: z.string().nullable(),
  role: AccountRole,
})
export type Account = z.infer<typeof Account>
