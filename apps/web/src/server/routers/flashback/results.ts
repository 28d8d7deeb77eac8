import { viewerProcedure } from '../../procedures'
import { FlashbackResults, FlashbackResultsInput } from './flashback.types'
import { probe } from './probe'

/** Tables that flashbacks made; a probe, within 3 s. */
export const results = viewerProcedure
  .input(FlashbackResultsInput)
  .output(FlashbackResults)
  .query(({ ctx, input }) =>
    probe(ctx, input.instanceId, (f) => f.results.query(input).then(({ results }) => results)),
  )
