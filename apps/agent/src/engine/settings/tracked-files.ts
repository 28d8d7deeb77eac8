import { createHash } from 'node:crypto'
import type { SettingDrift } from '@floe/agent-contract'
import type { EngineUser } from '../../host/engine-user'
import { readOwnedFile } from '../../host/owned-files'
import { replaceInTree } from '../../host/tree'
import type { InstanceLayout } from '../directory/layout'

/** The files of a data directory that set things, by their names there, in the order they are read: later ones win. */
export const settingsFiles = ['postgresql.conf', 'floe.conf', 'postgresql.auto.conf'] as const
export type SettingsFile = (typeof settingsFiles)[number]
export type FileTexts = Record<SettingsFile, string>

export function pathOf(layout: InstanceLayout, file: SettingsFile): string {
  const paths = {
    'postgresql.conf': layout.mainFile,
    'floe.conf': layout.managedFile,
    'postgresql.auto.conf': layout.autoFile,
  }
  return paths[file]
}

/** The texts as they are; a file that is missing is empty. */
export function readFileTexts(layout: InstanceLayout): FileTexts {
  return Object.fromEntries(
    settingsFiles.map((file) => [file, readOwnedFile(pathOf(layout, file)) ?? '']),
  ) as FileTexts
}

/** Writes those of the files whose texts differ; answers whether any did. */
export function writeFileTexts(layout: InstanceLayout, texts: FileTexts, owner: EngineUser): boolean {
  const now = readFileTexts(layout)
  const changed = settingsFiles.filter((file) => texts[file] !== now[file])
  for (const file of changed) replaceInTree(pathOf(layout, file), texts[file], owner)
  return changed.length > 0
}

const SEAL = /^# sum: ([0-9a-f]{32})\n$/
const sum = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)

/** Ends a managed file's text with the sum of what stands before, so that an edit by hand is distinguished from Floe's writing. */
export function seal(text: string): string {
  return `${text}# sum: ${sum(text)}\n`
}

/** True for a text that Floe wrote and nobody has changed since. */
export function isSealed(text: string): boolean {
  const at = text.lastIndexOf('# sum: ')
  return at >= 0 && SEAL.exec(text.slice(at))?.[1] === sum(text.slice(0, at))
}

export type SettingLine = { name: string; value: string; line: number }

/**
 * What the lines of a configuration file set, as PostgreSQL reads them: `name = value` or `name value`, quoted or not,
 * up to a comment. Includes are left out: what they bring in is somebody else's file.
 */
export function settingLinesOf(text: string): SettingLine[] {
  return text.split('\n').flatMap((content, i) => {
    const m = /^\s*([A-Za-z_][\w.$]*)\s*(?:=\s*|\s+)('(?:[^'\\]|''|\\.)*'|[^\s#']*)/.exec(content)
    const name = m?.[1]?.toLowerCase()
    if (!m || !name || name.startsWith('include')) return []
    return [{ name, value: unquoted(m[2] as string), line: i + 1 }]
  })
}

function unquoted(text: string): string {
  if (!text.startsWith("'")) return text
  return text
    .slice(1, -1)
    .replace(/''|\\(.)/g, (match, escaped: string | undefined) => (match === "''" ? "'" : (escaped ?? '')))
}

/** Name and value of a file; of two lines for one name the later counts. */
export function valuesOf(text: string): Map<string, string> {
  return new Map(settingLinesOf(text).map((l) => [l.name, l.value]))
}

/** Set by other operations of Floe, or by PostgreSQL's own programs for them: no drift. */
const placeInCluster =
  /^(primary_conninfo|primary_slot_name|restore_command|recovery_\w+|archive_cleanup_command|synchronous_standby_names|polar_page_repair_sources)$/

/** What the files say otherwise than before, name by name; comments, order and blanks do not count. */
export function driftOf(before: FileTexts, now: FileTexts): SettingDrift[] {
  return settingsFiles.flatMap((file) => {
    const [was, is] = [valuesOf(before[file]), valuesOf(now[file])]
    const lines = settingLinesOf(now[file])
    return [...new Set([...was.keys(), ...is.keys()])]
      .filter((name) => !placeInCluster.test(name) && was.get(name) !== is.get(name))
      .sort()
      .map((name) => ({
        name,
        file,
        line: lines.findLast((l) => l.name === name)?.line ?? null,
        was: was.get(name) ?? null,
        is: is.get(name) ?? null,
      }))
  })
}

/** A file's text without the lines that set these names. */
export function withoutLines(text: string, names: ReadonlySet<string>): string {
  const dropped = new Set(
    settingLinesOf(text)
      .filter((l) => names.has(l.name))
      .map((l) => l.line),
  )
  return text
    .split('\n')
    .filter((_, i) => !dropped.has(i + 1))
    .join('\n')
}
