import type { FlashbackRows } from '@floe/domain'

export type SampleRow = FlashbackRows['samples'][number]

/** Whether a column of a changed row has another value now. */
export const isChanged = (row: SampleRow, column: number): boolean =>
  row.rowThen !== null && row.rowNow !== null && row.rowThen[column] !== row.rowNow[column]

/**
 * The columns in the order in which they are looked at: the key, those that differ in any of the rows, then the rest, each as
 * in the table. A wide table then shows the difference without scrolling.
 */
export function columnOrder(
  columns: readonly string[],
  keyColumns: readonly string[] | null,
  rows: readonly SampleRow[],
): number[] {
  const all = columns.map((_, i) => i)
  const key = all.filter((i) => keyColumns?.includes(columns[i] as string))
  const differ = all.filter((i) => !key.includes(i) && rows.some((row) => isChanged(row, i)))
  return [...key, ...differ, ...all.filter((i) => !key.includes(i) && !differ.includes(i))]
}

/** The values of a sample's key, as a person names the row: `id 12`, `order 7, line 2`. */
export function keyInWords(
  row: SampleRow,
  columns: readonly string[],
  keyColumns: readonly string[] | null,
): string | null {
  const values = row.rowThen ?? row.rowNow
  if (!keyColumns || !values) return null
  return keyColumns.map((name) => `${name} ${values[columns.indexOf(name)] ?? 'NULL'}`).join(', ')
}

const byNumber = new Intl.Collator('en', { numeric: true })

/** The places of rows in the order of their keys, numbers as numbers; without a key as they came. */
export function rowOrder(
  rows: readonly SampleRow[],
  columns: readonly string[],
  keyColumns: readonly string[] | null,
): number[] {
  const places = rows.map((_, i) => i)
  if (!keyColumns) return places
  const key = keyColumns.map((name) => columns.indexOf(name))
  const values = rows.map((row) => key.map((i) => (row.rowThen ?? row.rowNow)?.[i] ?? ''))
  return places.sort((a, b) => {
    for (const i of key.keys()) {
      const order = byNumber.compare(values[a]?.[i] ?? '', values[b]?.[i] ?? '')
      if (order !== 0) return order
    }
    return a - b
  })
}
