import type { SettingView } from '@/server/api'

/** The settings that match every word of a search and the filters, by category. */
export function groupSettings(
  settings: readonly SettingView[],
  search: string,
  only: { changed: boolean; pending: boolean },
): [string, SettingView[]][] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const groups = new Map<string, SettingView[]>()
  for (const setting of settings) {
    if (only.pending && !setting.pendingRestart) continue
    if (only.changed && (setting.source === 'default' || setting.source === 'override')) continue
    const text =
      `${setting.name} ${setting.title ?? ''} ${setting.description} ${setting.category}`.toLowerCase()
    if (!words.every((word) => text.includes(word))) continue
    const group = groups.get(setting.category)
    if (group) group.push(setting)
    else groups.set(setting.category, [setting])
  }
  for (const group of groups.values()) group.sort((a, b) => a.name.localeCompare(b.name))
  return [...groups].sort(([a], [b]) => a.localeCompare(b))
}
