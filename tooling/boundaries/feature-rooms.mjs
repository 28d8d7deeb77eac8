// The rooms of the console's screens. The table in apps/web/src/features/README.md is their only list; this file
// reads it, checks it against the folders, and turns it into import rules.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const features = 'apps/web/src/features'
const header = '| room | what it is for | may import | gives to other rooms |'

const cells = (row) =>
  row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.replaceAll('`', '').trim())
const names = (cell) => (cell === '' ? [] : cell.split(',').map((name) => name.trim()))

/** The rows of the table in their order, as {name, imports, gives}; none in a tree without features. */
export function featureRooms(root) {
  const readme = join(root, features, 'README.md')
  if (!existsSync(readme)) return []
  const lines = readFileSync(readme, 'utf8').split('\n')
  const first = lines.indexOf(header) + 2
  if (first < 2) throw new Error(`${features}/README.md has no table "${header}"`)
  const end = lines.findIndex((line, index) => index >= first && !line.startsWith('|'))
  return lines.slice(first, end < 0 ? undefined : end).map((row) => {
    const [name, , imports, gives] = cells(row)
    return { name, imports: names(imports), gives: names(gives) }
  })
}

/** What is wrong with the table itself: each a sentence. */
export function tableProblems(root) {
  const folder = join(root, features)
  if (!existsSync(folder)) return []
  const folders = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
  const rooms = featureRooms(root)
  const listed = rooms.map((room) => room.name)
  const problems = folders
    .filter((name) => !listed.includes(name))
    .map((name) => `${name} is a folder without a row`)
  for (const [index, { name, imports, gives }] of rooms.entries()) {
    if (!folders.includes(name)) {
      problems.push(`${name} is a row without a folder`)
      continue
    }
    const above = listed.slice(0, index)
    for (const other of imports.filter((o) => !above.includes(o)))
      problems.push(`${name} may import ${other}, which is not a row above it`)
    for (const file of gives)
      if (!existsSync(join(folder, name, `${file}.ts`)) && !existsSync(join(folder, name, `${file}.tsx`)))
        problems.push(`${name} gives ${file}, which does not exist`)
  }
  return problems
}

/** The table in dependency-cruiser's words. */
export function featureRules(rooms) {
  if (rooms.length === 0) return []
  const rules = [
    {
      name: 'only pages and features import features',
      severity: 'error',
      from: { path: '^apps/web/', pathNot: '^apps/web/src/(app|features)/' },
      to: { path: `^${features}/` },
    },
    {
      name: 'a feature imports only the API of the server',
      severity: 'error',
      from: { path: `^${features}/` },
      to: { path: '^apps/web/src/server/', pathNot: '^apps/web/src/server/api\\.ts$' },
    },
  ]
  for (const { name, imports, gives } of rooms) {
    const never = rooms.map((r) => r.name).filter((other) => other !== name && !imports.includes(other))
    if (never.length > 0)
      rules.push({
        name: `feature ${name} imports only what ${features}/README.md allows`,
        severity: 'error',
        from: { path: `^${features}/${name}/` },
        to: { path: `^${features}/(${never.join('|')})/` },
      })
    rules.push({
      name: `feature ${name} gives only what ${features}/README.md lists`,
      severity: 'error',
      from: { path: `^${features}/`, pathNot: `^${features}/${name}/` },
      to: {
        path: `^${features}/${name}/`,
        ...(gives.length > 0 ? { pathNot: `^${features}/${name}/(${gives.join('|')})\\.tsx?$` } : {}),
      },
    })
  }
  return rules
}
