import { viewerProcedure } from '../../procedures'
import { FlashbackActivity, FlashbackActivityInput } from './flashback.types'
import { probe } from './probe'

/** What happened to the tables of a database, as far as the agent has read the WAL; a probe, within 3 s. */
export const activity = viewerProcedure
  .input(FlashbackActivityInput)
  .output(FlashbackActivity)
  .query(({ ctx, input }) => probe(ctx, input.instanceId, (f) => f.activity.query(input)))
