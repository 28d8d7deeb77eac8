import { HIDDEN_VALUE, isHiddenSetting, withoutHiddenValues } from '@floe/domain'

/** Where an answer that names a setting keeps its values. */
const valueKeys = new Set([
  'value',
  'shown',
  'resetValue',
  'managedValue',
  'fileError',
  'oldValue',
  'newValue',
  'was',
  'is',
  'pending',
])
/** Where sentences stand: of faults, incidents, operations, logs. */
const textKeys = new Set(['text', 'message', 'detail', 'hint', 'title', 'because', 'reason'])

/**
 * An answer as somebody without the right to change settings gets it: without the values of settings that only superusers
 * see, wherever they stand, and in sentences nothing after the name of one.
 */
export function withoutHiddenSettings<T>(answer: T): T {
  return walk(answer, false) as T
}

/** The same of each event of a subscription. */
export async function* eachWithoutHiddenSettings<T>(events: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const event of events) yield withoutHiddenSettings(event)
}

function walk(part: unknown, named: boolean): unknown {
  if (Array.isArray(part)) {
    // samples are long rows of numbers
    if (typeof part[0] === 'number') return part
    return part.map((p) => walk(p, named))
  }
  if (typeof part !== 'object' || part === null || Object.getPrototypeOf(part) !== Object.prototype)
    return part
  const object = part as Record<string, unknown>
  const ofHidden = named || (typeof object.name === 'string' && isHiddenSetting(object.name))
  // of a setting of the catalogue, the sentences are PostgreSQL's own
  const catalogue = 'category' in object && 'context' in object
  return Object.fromEntries(
    Object.entries(object).map(([key, value]) => {
      if (typeof value !== 'string') return [key, walk(value, ofHidden)]
      if ((ofHidden && valueKeys.has(key)) || isHiddenSetting(key)) return [key, HIDDEN_VALUE]
      return [key, !catalogue && textKeys.has(key) ? withoutHiddenValues(value) : value]
    }),
  )
}
