import { viewerProcedure } from '../../procedures'
import { Account } from './account.types'

/** Who asks and as what. */
export const me = viewerProcedure.output(Account).query(({ ctx }) => ctx.actor)
