import type { FlashbackMerged } from '@floe/domain'
import { rowsInWords } from './table-events'

/** What a merge is to do with rows that differ. */
export type MergeOptions = { insertMissing: boolean; restoreChanged: boolean; deleteAdded: boolean }

export const standardMerge: MergeOptions = { insertMissing: true, restoreChanged: true, deleteAdded: false }

/** What can be done with a table whose rows no key distinguishes. */
export const keylessMerge: MergeOptions = { insertMissing: true, restoreChanged: false, deleteAdded: false }

export const doesNothing = (options: MergeOptions): boolean =>
  !options.insertMissing && !options.restoreChanged && !options.deleteAdded

export const sameOptions = (a: MergeOptions, b: MergeOptions): boolean =>
  a.insertMissing === b.insertMissing &&
  a.restoreChanged === b.restoreChanged &&
  a.deleteAdded === b.deleteAdded

/** `12,345 rows inserted, 12 rows restored`; what did not happen is left out. */
export function mergedInWords({ inserted, restored, deleted }: FlashbackMerged): string {
  const parts = [
    inserted > 0 ? `${rowsInWords(inserted)} inserted` : null,
    restored > 0 ? `${rowsInWords(restored)} restored` : null,
    deleted > 0 ? `${rowsInWords(deleted)} deleted` : null,
  ].filter((part) => part !== null)
  return parts.length === 0 ? 'No row changed' : parts.join(', ')
}

const number = new Intl.NumberFormat('en')

/** ` 3 conflicts were left out.`; nothing where there were none. */
export function conflictsInWords({ conflicts }: FlashbackMerged): string {
  if (conflicts === 0) return ''
  return conflicts === 1
    ? ' 1 conflict was left out.'
    : ` ${number.format(conflicts)} conflicts were left out.`
}

/** The parts of `schema.name`. */
export const partsOf = (tableName: string): [schema: string, name: string] => {
  const dot = tableName.indexOf('.')
  return [tableName.slice(0, Math.max(0, dot)), tableName.slice(dot + 1)]
}

/** Whether a table came back under its own name, in whichever schema: then it is that table again, and no result. */
export const isGivenBack = (resultName: string, tableName: string): boolean =>
  partsOf(resultName)[1] === partsOf(tableName)[1]

/** The name of a result that no other table of the schema has: the engine's own, or that one with a number. */
export function freeResultName(table: number, schema: string, taken: readonly string[]): string | null {
  const base = `polar_flashback_${table}`
  const isTaken = (name: string) => taken.includes(`${schema}.${name}`)
  if (!isTaken(base)) return null
  let n = 2
  while (isTaken(`${base}_${n}`)) n++
  return `${base}_${n}`
}
