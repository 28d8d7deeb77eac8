import { fault } from '@floe/domain'
import type { EngineUser } from '../../host/engine-user'
import { readOwnedFile } from '../../host/owned-files'
import { replaceInTree } from '../../host/tree'
import { isSealed, seal, valuesOf } from './tracked-files'

const header = `# Written by Floe and replaced at every change. Put lines of your own into postgresql.conf,
# and change the ones in here through the console or "./floe setting set".
`

const clusterHeader = `# Written by Floe and replaced when the instance's place in its cluster changes. Do not edit.
`

/** The line by which the managed file brings in what the cluster asks for; it stands last, so that it counts. */
const includeClusterFile = "include_if_exists 'floe.cluster.conf'"

/** The line by which it brings in TLS; it stands first, so that a person's own certificate wins. */
const includeTlsFile = "include_if_exists 'floe.tls.conf'"

/** A value as postgresql.conf wants it: always quoted, so that no text can end the line or start a comment. */
export function quoteValue(value: string): string {
  if (/[\n\r\0]/.test(value))
    throw fault('setting.invalid_value', 'a setting cannot contain a line break', {
      detail: `The value is ${JSON.stringify(value)}.`,
    })
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}

/** Name and value of every line of a configuration file that has this program's own simple form. */
export function parseConfiguration(text: string): Map<string, string> {
  const settings = new Map<string, string>()
  for (const line of text.split('\n')) {
    const m = /^\s*([A-Za-z_][\w.$]*)\s*=?\s*'((?:[^'\\]|''|\\.)*)'\s*(?:#.*)?$/.exec(line)
    const name = m?.[1]?.toLowerCase()
    if (m && name && !name.startsWith('include')) settings.set(name, unquote(m[2] as string))
  }
  return settings
}

function unquote(text: string): string {
  return text.replace(/''|\\(.)/g, (match, escaped: string | undefined) =>
    match === "''" ? "'" : (escaped ?? ''),
  )
}

const settingLines = (settings: ReadonlyMap<string, string>) =>
  [...settings]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name} = ${quoteValue(value)}`)
    .join('\n')

export function formatConfiguration(settings: ReadonlyMap<string, string>): string {
  return `${header}${includeTlsFile}\n\n${settingLines(settings)}\n\n${includeClusterFile}\n`
}

/** The file of what the cluster asks for, in the same simple form. */
export function formatClusterConfiguration(settings: ReadonlyMap<string, string>): string {
  return `${clusterHeader}${settingLines(settings)}\n`
}

/** Settings of an instance's managed file, also in lines that somebody wrote by hand; empty when it is missing. */
export function readManagedSettings(path: string): Map<string, string> {
  return valuesOf(readOwnedFile(path) ?? '')
}

/** The same as a record, to be kept or sent. */
export const managedRecord = (path: string): Record<string, string> =>
  Object.fromEntries(readManagedSettings(path))

/** The text of an instance's managed file. */
export const managedFileText = (settings: ReadonlyMap<string, string>): string =>
  seal(formatConfiguration(settings))

export function writeManagedSettings(
  path: string,
  settings: ReadonlyMap<string, string>,
  owner: EngineUser,
): void {
  replaceInTree(path, managedFileText(settings), owner)
}

/**
 * Has a managed file that an earlier version wrote bring in all that it has to. What somebody edited by hand stays an edit
 * by hand, and one that is missing stays missing: the engine does not start without it, rather than without its settings.
 * Answers whether anything changed.
 */
export function completeManagedFile(path: string, owner: EngineUser): boolean {
  const text = readOwnedFile(path)
  if (text === null) return false
  const lines = text.split('\n')
  const [tls, cluster] = [lines.includes(includeTlsFile), lines.includes(includeClusterFile)]
  if (tls && cluster) return false
  if (isSealed(text)) writeManagedSettings(path, valuesOf(text), owner)
  else
    replaceInTree(
      path,
      `${tls ? '' : `${includeTlsFile}\n\n`}${text}${cluster ? '' : `\n${includeClusterFile}\n`}`,
      owner,
    )
  return true
}

/** The managed settings after changes; a null value removes the line. */
export function applyChanges(
  settings: ReadonlyMap<string, string>,
  changes: readonly { name: string; value: string | null }[],
): Map<string, string> {
  const after = new Map(settings)
  for (const { name, value } of changes) {
    if (value === null) after.delete(name.toLowerCase())
    else after.set(name.toLowerCase(), value)
  }
  return after
}
