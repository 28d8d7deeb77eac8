import {
  type Fault,
  type InstanceLimits,
  type LimitChanges,
  type LimitName,
  limitHint,
  limitNames,
  limitText,
  parseLimit,
  toFault,
} from '@floe/domain'

/** What stands in the fields; empty is no limit. */
export type LimitTexts = Record<LimitName, string>

export const limitTexts = (limits: InstanceLimits | LimitChanges): LimitTexts =>
  Object.fromEntries(
    limitNames.map((name) => [name, limits[name] == null ? '' : limitText(name, limits[name])]),
  ) as LimitTexts

/** What the fields change of the limits that there are, or what is wrong with each. */
export function typedLimits(
  texts: LimitTexts,
  before: InstanceLimits,
): { changes: LimitChanges; wrong: Map<LimitName, string> } {
  const wrong = new Map<LimitName, string>()
  const changes: LimitChanges = {}
  for (const name of limitNames) {
    try {
      const value = texts[name].trim() === '' ? null : parseLimit(name, texts[name])
      if (value !== before[name]) changes[name] = value
    } catch (error) {
      wrong.set(name, wrongWords(toFault(error), name))
    }
  }
  return { changes, wrong }
}

const wrongWords = (fault: Fault, name: LimitName) => `${fault.message}. ${limitHint(name)}`
