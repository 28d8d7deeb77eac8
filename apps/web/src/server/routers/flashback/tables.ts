import { viewerProcedure } from '../../procedures'
import { FlashbackTables, FlashbackTablesInput } from './flashback.types'
import { probe } from './probe'

/** The tables of a database, with the databases; a probe, within 3 s. */
export const tables = viewerProcedure
  .input(FlashbackTablesInput)
  .output(FlashbackTables)
  .query(({ ctx, input }) => probe(ctx, input.instanceId, (f) => f.tables.query(input)))
