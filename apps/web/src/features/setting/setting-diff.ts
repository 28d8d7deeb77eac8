import { formatBytes, type SettingChange } from '@floe/domain'
import type { MemberSettingValue, SettingView } from '@/server/api'
import { formatSize, parseSize, unitBytes } from './size-value'

/** What a person wants, by name; null means back to the default. */
export type Draft = ReadonlyMap<string, string | null>

/** The value that stands for all members where one is shown: the first one's that could be read, the primary's before others. */
export const leadValue = (setting: SettingView): MemberSettingValue | null =>
  setting.values.find((v) => v !== null) ?? null

/** The value that the managed file or the running instance has: a pending one counts, so that it is not asked for twice. */
const textOf = (value: MemberSettingValue): string =>
  value.pendingRestart && value.managedValue !== null ? value.managedValue : (value.shown ?? '')

/** The same of the value that stands for all members. */
export function currentText(setting: SettingView): string {
  const value = leadValue(setting)
  return value ? textOf(value) : ''
}

/** Whether Floe's file sets it on any member. */
export const isManaged = (setting: SettingView) =>
  setting.values.some((v) => v !== null && v.managedValue !== null)

const truths: Record<string, boolean> = {
  on: true,
  true: true,
  yes: true,
  '1': true,
  off: false,
  false: false,
  no: false,
  '0': false,
}

/** True when two texts mean the same for this setting: `4MB` and `4096kB`, `on` and `true`. */
export function sameValue(setting: SettingView, a: string, b: string): boolean {
  if (a.trim() === b.trim()) return true
  if (setting.type === 'bool') {
    const [x, y] = [truths[a.trim().toLowerCase()], truths[b.trim().toLowerCase()]]
    return x !== undefined && x === y
  }
  if (unitBytes(setting.unit) !== null) {
    const [x, y] = [parseSize(a, setting.unit), parseSize(b, setting.unit)]
    return x !== null && x === y
  }
  if (setting.type === 'integer' || setting.type === 'real')
    return a.trim() !== '' && b.trim() !== '' && Number(a) === Number(b)
  return false
}

/** The changes that a draft amounts to: what every member has already is left out. In the order of the settings. */
export function settingDiff(settings: readonly SettingView[], draft: Draft): SettingChange[] {
  const changes: SettingChange[] = []
  for (const setting of settings) {
    const wanted = draft.get(setting.name)
    if (wanted === undefined) continue
    if (wanted === null) {
      if (isManaged(setting)) changes.push({ name: setting.name, value: null })
      continue
    }
    if (setting.values.some((v) => v === null || !sameValue(setting, wanted, textOf(v))))
      changes.push({ name: setting.name, value: wanted.trim() })
  }
  return changes
}

/** The range of a setting in words, with its unit; null where it has none. */
export function rangeWords(setting: SettingView): string | null {
  if (setting.choices && setting.choices.length > 0) return setting.choices.join(' | ')
  if (setting.type === 'bool') return 'on | off'
  if (setting.min === null || setting.max === null) return null
  const bytes = unitBytes(setting.unit)
  if (bytes !== null) {
    const size = (text: string) => (Number(text) <= 0 ? text : formatBytes(Number(text) * bytes))
    return `${size(setting.min)} … ${size(setting.max)}`
  }
  return `${setting.min} … ${setting.max}${setting.unit ? ` ${setting.unit}` : ''}`
}

/** A value as pg_settings keeps it (in the setting's unit) as people write it; null stays null. */
export function valueWords(setting: SettingView, value: string | null): string | null {
  const bytes = unitBytes(setting.unit)
  if (value === null || setting.unit === null || !/^\d+$/.test(value)) return value
  return bytes === null ? `${value} ${setting.unit}` : formatSize(Number(value) * bytes)
}

/** What has to happen before a change is in force, in words. */
export const impactWords: Record<SettingView['impact'], string> = {
  reload: 'reload',
  restart: 'restart',
  'new-connections': 'new connections',
  'read-only': 'cannot be changed',
}

export const impactMeaning: Record<SettingView['impact'], string> = {
  reload: 'In force a moment after it is applied; nobody is disconnected.',
  restart: 'Written at once, in force after the next restart.',
  'new-connections': 'In force for connections made after it is applied.',
  'read-only': 'Fixed when the engine was built or the instance was created.',
}

/** Whether a text turns a switch off, in any of PostgreSQL's words. */
export const isOff = (text: string | null) => text !== null && truths[text.trim().toLowerCase()] === false
