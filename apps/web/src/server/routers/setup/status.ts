import { checkSetupLink, hasOwner } from '@floe/db'
import { publicProcedure } from '../../procedures'
import { SetupStatus, SetupStatusInput } from './setup.types'

/** Whether somebody owns the installation, and whether a set-up link still works. */
export const status = publicProcedure
  .input(SetupStatusInput)
  .output(SetupStatus)
  .query(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const [ownerExists, link] = await Promise.all([
      hasOwner(pool),
      input.token === undefined ? null : checkSetupLink(pool, input.token),
    ])
    return { ownerExists, link }
  })
