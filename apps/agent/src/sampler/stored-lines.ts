import type { z } from 'zod'

/** The whole lines of a file of records in JSON; what does not read as one is left out. */
export function parseStoredLines<S extends z.ZodType>(text: string, schema: S): z.output<S>[] {
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .flatMap((line) => {
      if (line === '') return []
      try {
        const parsed = schema.safeParse(JSON.parse(line))
        return parsed.success ? [parsed.data] : []
      } catch {
        return []
      }
    })
}

/** Records as lines, the other way round. */
export const storedLines = (records: readonly object[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('')
