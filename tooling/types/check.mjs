// Checks the types of every workspace that has a script "typecheck"; nothing is written. Exit status 1 when one is wrong.
// Last line: `N passed, N failed, N skipped`, counting workspaces.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { wrongTypes } from './wrong-types.mjs'

const root = join(import.meta.dirname, '../..')
const read = (file) => JSON.parse(readFileSync(join(root, file), 'utf8'))
const checked = read('package.json')
  .workspaces.flatMap((pattern) => globSync(join(pattern, 'package.json'), { cwd: root }))
  .sort()
  .filter((file) => read(file).scripts?.typecheck !== undefined)
  .map(dirname)
let failed = 0
for (const { lines } of wrongTypes(root, checked)) {
  for (const line of lines) console.log(line)
  if (lines.length > 0) failed++
}
console.log(`${checked.length - failed} passed, ${failed} failed, 0 skipped`)
process.exit(failed === 0 ? 0 : 1)
