import { operationKindsThat } from '@floe/domain'

const kinds = operationKindsThat(({ readsOnly }) => readsOnly === true)
  .map((kind) => `'${kind}'`)
  .join(', ')

/**
 * Says in SQL that an operation has not ended and that others on its instance or cluster have to wait for it: those that only
 * read keep nobody from anything. `of` is the table's name in the query, with a dot.
 */
export const isOpen = (of = ''): string =>
  `${of}state IN ('queued', 'running', 'cancelling') AND ${of}kind NOT IN (${kinds})`

/** Of those that keep nobody from anything. */
export const isOpenReader = (of = ''): string =>
  `${of}state IN ('queued', 'running', 'cancelling') AND ${of}kind IN (${kinds})`
