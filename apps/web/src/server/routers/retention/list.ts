import { readRecordRetention, readRetention } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { RetentionKind, RetentionList, retentionWords } from './retention.types'

/** How long samples and records are kept. */
export const list = viewerProcedure.output(RetentionList).query(async ({ ctx }) => {
  const { pool } = ctx.ports.database
  const records = await readRecordRetention(pool)
  const samples = Object.fromEntries(
    (await readRetention(pool)).map((r) => [
      `sample-${r.stepSeconds === 60 ? '1m' : `${r.stepSeconds}s`}`,
      r.keepSeconds,
    ]),
  )
  const keep = { ...samples, ...records } as Record<string, number | undefined>
  return {
    retention: RetentionKind.options.flatMap((kind) => {
      const keepSeconds = keep[kind]
      return keepSeconds === undefined ? [] : [{ kind, meaning: retentionWords[kind], keepSeconds }]
    }),
  }
})
