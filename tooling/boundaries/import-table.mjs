// The rooms of the checkout. The table in ARCHITECTURE.md is their only list; this file reads it and checks it against
// the folders.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const document = 'ARCHITECTURE.md'
const header = '| room | may import |'

/** Folders that hold rooms; beside them there is only e2e. */
const parents = ['apps', 'packages']

/** Each name of a cell as {name, types}; what stands in parentheses explains, save a leading `types`. */
const named = (cell) =>
  cell === 'nothing'
    ? []
    : cell.split(/,(?![^(]*\))/).map((text) => ({
        name: text.replace(/\(.*\)/, '').trim(),
        types: /\(types\b/.test(text),
        // "(only types)" would allow code
        unclear: /types/i.test(text) && !/\(types\b/.test(text),
      }))

/** The rows in their order, as {name, imports}; a row may name several rooms. */
function rows(root) {
  const lines = readFileSync(join(root, document), 'utf8').split('\n')
  const first = lines.indexOf(header) + 2
  if (first < 2) throw new Error(`${document} has no table "${header}"`)
  const end = lines.findIndex((line, index) => index >= first && !line.startsWith('|'))
  return lines.slice(first, end < 0 ? undefined : end).flatMap((row) => {
    const [rooms, imports] = row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
    return named(rooms).map(({ name }) => ({ name, imports: named(imports) }))
  })
}

/** Path of the folder by name, of every room that there is. */
function folders(root) {
  const found = parents.flatMap((parent) =>
    existsSync(join(root, parent))
      ? readdirSync(join(root, parent), { withFileTypes: true })
          .filter((entry) => entry.isDirectory())
          .map(({ name }) => [name, `${parent}/${name}`])
      : [],
  )
  const all = existsSync(join(root, 'e2e')) ? [...found, ['e2e', 'e2e']] : found
  const twice = all.find(([name], index) => all.some(([other], at) => at < index && other === name))
  if (twice) throw new Error(`two folders are called "${twice[0]}": a row cannot tell them apart`)
  return new Map(all)
}

/** Folder of each room → the folders it may import: `code`, and `types` only for types. */
export function importRooms(root) {
  const paths = folders(root)
  const pathsOf = (imports) => imports.flatMap(({ name }) => paths.get(name) ?? [])
  return Object.fromEntries(
    rows(root)
      .filter(({ name }) => paths.has(name))
      .map(({ name, imports }) => [
        paths.get(name),
        {
          code: pathsOf(imports.filter(({ types }) => !types)),
          types: pathsOf(imports.filter(({ types }) => types)),
        },
      ]),
  )
}

/** What is wrong with the table itself: each a sentence. */
export function importTableProblems(root) {
  const paths = folders(root)
  const table = rows(root)
  const listed = table.map(({ name }) => name)
  return [
    ...[...paths]
      .filter(([name]) => !listed.includes(name))
      .map(([, path]) => `${path} is a folder without a row`),
    ...table.flatMap(({ name, imports }, index) => [
      ...(paths.has(name) ? [] : [`${name} is a row without a folder`]),
      ...(listed.indexOf(name) < index ? [`${name} has two rows`] : []),
      ...imports
        .filter((other) => !listed.includes(other.name))
        .map((other) => `${name} may import ${other.name}, which has no row`),
      ...imports
        .filter((other) => other.unclear)
        .map((other) => `${name} may import ${other.name}: "types" has to stand first in the parentheses`),
    ]),
  ]
}
