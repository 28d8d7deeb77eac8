import { type FlashbackEvent, momentBefore } from '@floe/domain'
import type { Stretch } from './window-scale'

/** What an event did to the rows that were there: took them away, overwrote them, or neither. */
export type Loss = 'rows' | 'values' | 'none'

type Verb = 'deleted' | 'updated' | 'inserted' | 'truncated' | 'dropped' | 'rewritten' | 'altered'

/** Events of one table and one verb that follow each other closely, as one. */
export type EventGroup = {
  verb: Verb
  loss: Loss
  table: number
  tableName: string | null
  /** Of the first and of the last commit. */
  from: number
  to: number
  rows: number
  transactions: number
  /** Of a partitioned table: the partitions of the transaction that concerned most of them; null: the table itself. */
  partitions: number | null
}

/** A gap between commits that belong together: a script that deletes in batches. */
const TOGETHER_MS = 10_000

const verbOf = (event: FlashbackEvent): Verb => {
  switch (event.kind) {
    case 'truncate':
      return 'truncated'
    case 'drop':
      return 'dropped'
    case 'rewrite':
      return 'rewritten'
    case 'ddl':
      return 'altered'
    default:
      if (event.deleted >= event.updated && event.deleted > 0) return 'deleted'
      return event.updated > 0 ? 'updated' : 'inserted'
  }
}

const lossOf: Record<Verb, Loss> = {
  deleted: 'rows',
  truncated: 'rows',
  dropped: 'rows',
  updated: 'values',
  inserted: 'none',
  rewritten: 'none',
  altered: 'none',
}

const rowsOf = (event: FlashbackEvent, verb: Verb) =>
  verb === 'deleted'
    ? event.deleted
    : verb === 'updated'
      ? event.updated
      : verb === 'inserted'
        ? event.inserted
        : 0

/** Events in the order of their commits, those that belong together as one. */
export function groupEvents(events: readonly FlashbackEvent[]): EventGroup[] {
  const groups: EventGroup[] = []
  const open = new Map<string, EventGroup>()
  for (const event of [...events].sort((a, b) => a.at - b.at)) {
    const verb = verbOf(event)
    const key = `${event.table} ${verb}`
    const group = open.get(key)
    if (group && event.at - group.to <= TOGETHER_MS) {
      group.to = event.at
      group.rows += rowsOf(event, verb)
      group.transactions += 1
      if (group.partitions !== null)
        group.partitions = event.partitions == null ? null : Math.max(group.partitions, event.partitions)
      continue
    }
    const begun = {
      verb,
      loss: lossOf[verb],
      table: event.table,
      tableName: event.tableName,
      from: event.at,
      to: event.at,
      rows: rowsOf(event, verb),
      transactions: 1,
      partitions: event.partitions ?? null,
    }
    open.set(key, begun)
    groups.push(begun)
  }
  return groups
}

/** The last moment before an event: what was committed before it counts then, even within the same millisecond. */
export const justBefore = momentBefore

const number = new Intl.NumberFormat('en')
export const rowsInWords = (rows: number): string => `${number.format(rows)} ${rows === 1 ? 'row' : 'rows'}`

/** `12,345 rows were deleted`, `the table was truncated`, `3 partitions were truncated`. */
export function groupInWords({ verb, rows, transactions, partitions }: EventGroup): string {
  const several = transactions > 1 ? ` in ${number.format(transactions)} transactions` : ''
  if (verb === 'deleted' || verb === 'updated' || verb === 'inserted')
    return `${rowsInWords(rows)} ${rows === 1 ? 'was' : 'were'} ${verb}${several}`
  if (partitions !== null) {
    const some = partitions === 1 ? 'a partition was' : `${number.format(partitions)} partitions were`
    return `${transactions > 1 ? 'partitions were' : some} ${verb}${several}`
  }
  return `the table was ${verb}${transactions > 1 ? ` ${number.format(transactions)} times` : ''}`
}

/** The groups of which somebody may want the time before, newest first: those that took rows or values away come first. */
export function suggestions(groups: readonly EventGroup[], table: number, window: Stretch): EventGroup[] {
  const rank: Record<Loss, number> = { rows: 0, values: 0, none: 1 }
  return groups
    .filter((g) => g.table === table && justBefore(g.from) >= window.from && g.from <= window.to)
    .sort((a, b) => rank[a.loss] - rank[b.loss] || b.from - a.from)
}

/** What is drawn at one place of a timeline: events too near each other for marks of their own share one. */
export type Mark = { at: number; loss: Loss; groups: EventGroup[] }

/** Marks over a stretch of time that is drawn so many pixels wide; a mark stands at its first event. */
export function marksOver(
  groups: readonly EventGroup[],
  view: Stretch,
  width: number,
  apartPixels = 18,
): Mark[] {
  const perPixel = (view.to - view.from) / Math.max(1, width)
  const marks: Mark[] = []
  const worst: readonly Loss[] = ['rows', 'values', 'none']
  for (const group of [...groups].sort((a, b) => a.from - b.from)) {
    if (group.from < view.from || group.from > view.to) continue
    const last = marks.at(-1)
    if (last && group.from - last.at < apartPixels * perPixel) {
      last.groups.push(group)
      if (worst.indexOf(group.loss) < worst.indexOf(last.loss)) last.loss = group.loss
    } else marks.push({ at: group.from, loss: group.loss, groups: [group] })
  }
  return marks
}
