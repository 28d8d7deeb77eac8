import { viewerProcedure } from '../../procedures'
import { FlashbackLostInput, FlashbackLostList } from './flashback.types'
import { probe } from './probe'

/** Tables that were dropped, truncated or rewritten and can be had back; a probe, within 3 s. */
export const lost = viewerProcedure
  .input(FlashbackLostInput)
  .output(FlashbackLostList)
  .query(({ ctx, input }) =>
    probe(ctx, input.instanceId, (f) => f.lost.query(input).then(({ lost }) => lost)),
  )
