import { z } from 'zod'

/** As long as PostgreSQL keeps a name. */
const NAME_MAX_BYTES = 63
const utf8Bytes = (text: string) => new TextEncoder().encode(text).length

/** Name of a relation or a column, as the catalog has it. */
export const CatalogName = z
  .string()
  .min(1, 'must not be empty')
  .refine((name) => utf8Bytes(name) <= NAME_MAX_BYTES, `must have at most ${NAME_MAX_BYTES} bytes`)

/** A directory of an instance's host, as a person names it. */
export const HostDirectory = z
  .string()
  .max(1_000, 'must have at most 1000 characters')
  .regex(/^\//, 'must be an absolute path')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused
  .regex(/^[^\u0000-\u001f\u007f]*$/, 'must not contain control characters')

const part = '("(?:[^"]|"")+"|[^".\\s]+)'
const qualified = new RegExp(`^${part}\\.${part}$`, 'u')

/** A table with its schema, as in SQL: `public.account`, `"Odd schema"."T"`. */
export const QualifiedName = z
  .string()
  .refine((text) => partsOf(text) !== null, 'must be a schema and a name, e.g. public.account')
  .refine(
    (text) => partsOf(text)?.every((name) => utf8Bytes(name) <= NAME_MAX_BYTES) ?? true,
    `must have at most ${NAME_MAX_BYTES} bytes in each name`,
  )

function partsOf(text: string): [string, string] | null {
  const [, schema, name] = qualified.exec(text) ?? []
  return schema && name ? [unquoted(schema), unquoted(name)] : null
}

/** What is not quoted is in lower case, as PostgreSQL reads it. */
const unquoted = (name: string): string =>
  name.startsWith('"')
    ? name.slice(1, -1).replaceAll('""', '"')
    : name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())

/** Schema and name that a QualifiedName names. */
export function readQualifiedName(text: string): { schema: string; name: string } {
  const [schema, name] = partsOf(QualifiedName.parse(text)) as [string, string]
  return { schema, name }
}

/** Written so that readQualifiedName() reads the same: quoted only where that is needed. */
export const qualifiedName = (schema: string, name: string): string =>
  [schema, name]
    .map((word) => (/^[a-z_][a-z0-9_$]*$/.test(word) ? word : `"${word.replaceAll('"', '""')}"`))
    .join('.')

/** What the table with the rows is named where nobody says so: `polar_restored_` and the former name, as far as that fits. */
export function restoredName(name: string): string {
  let cut = `polar_restored_${name}`
  while (utf8Bytes(cut) > NAME_MAX_BYTES) cut = [...cut].slice(0, -1).join('')
  return cut
}

/** A table as it was at a moment, restored from a base backup and a WAL archive into a new table. */
export const RestoredTable = z.object({
  /** A QualifiedName. */
  resultName: z.string(),
  rows: z.number().int(),
  bytes: z.number(),
  /** When the newest transaction in it ended, with a time zone; null where the backup itself is all that there was. */
  reachedAt: z.string().nullable(),
  /** What a person should know of it, in sentences: columns that are text now, a backup of another system. */
  warnings: z.array(z.string()),
})
export type RestoredTable = z.infer<typeof RestoredTable>
