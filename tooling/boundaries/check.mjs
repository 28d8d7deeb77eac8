// Checks the import rules, the order of every query, and what files of the agent and the command line call of
// the file system and which programs they start. Exit status 1 when one is broken. Last line:
// `N passed, N failed, N skipped`, counting modules and queries that order.
import { join } from 'node:path'
import { brokenRules } from './cruise.mjs'
import { tableProblems } from './feature-rooms.mjs'
import { importTableProblems } from './import-table.mjs'
import { castOrders } from './order-by.mjs'
import { roundTheDoor } from './tree-door.mjs'

const root = join(import.meta.dirname, '../..')
const { broken, modules } = await brokenRules(root)
const orders = castOrders(root, ['apps', 'packages', 'e2e', 'engine'])
const tables = [
  ...importTableProblems(root).map((problem) => `ARCHITECTURE.md: ${problem}`),
  ...tableProblems(root).map((problem) => `apps/web/src/features/README.md: ${problem}`),
]
for (const problem of tables) console.error(problem)
for (const { rule, from, to } of broken) console.error(`${from} → ${to}\n  ${rule}`)
for (const { file, line, text } of orders.broken)
  console.error(
    `${file}:${line}: ${text}\n  names an output column that is a cast; name the column itself with its table (t.id)`,
  )
const door = roundTheDoor(root)
for (const { file, problem } of door.broken)
  console.error(`${file} ${problem}\n  tooling/boundaries/tree-door.mjs says what each file may do`)
const failed =
  tables.length + new Set(broken.map((b) => b.from)).size + orders.broken.length + door.broken.length
console.log(`${modules + orders.queries + door.files - failed} passed, ${failed} failed, 0 skipped`)
process.exit(failed === 0 ? 0 : 1)
