import type { SettingView } from '@/server/api'

/** Sources of values that nobody chose. */
const untouched = ['default', 'override']

/**
 * The settings that match every word of a search and the filters, by category. The notable ones are few: one group without
 * a name, those whose order matters first.
 */
export function groupSettings(
  settings: readonly SettingView[],
  search: string,
  only: { changed: boolean; pending: boolean; notable: boolean },
): [string, SettingView[]][] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const groups = new Map<string, SettingView[]>()
  for (const setting of settings) {
    if (only.notable && !setting.notable) continue
    if (only.pending && !setting.values.some((v) => v?.pendingRestart)) continue
    if (only.changed && !setting.values.some((v) => v && !untouched.includes(v.source))) continue
    const text =
      `${setting.name} ${setting.title ?? ''} ${setting.description} ${setting.category}`.toLowerCase()
    if (!words.every((word) => text.includes(word))) continue
    const category = only.notable ? '' : setting.category
    const group = groups.get(category)
    if (group) group.push(setting)
    else groups.set(category, [setting])
  }
  const rank = (setting: SettingView) => (only.notable && !setting.ordered ? 1 : 0)
  for (const group of groups.values()) group.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name))
  return [...groups].sort(([a], [b]) => a.localeCompare(b))
}
