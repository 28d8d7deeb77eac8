// Checks the import rules over the whole tree. Exit status 1 when one is broken. Last line: `N passed, N failed, N skipped`,
// counting modules.
import { join } from 'node:path'
import { brokenRules } from './cruise.mjs'

const { broken, modules } = await brokenRules(join(import.meta.dirname, '../..'))
for (const { rule, from, to } of broken) console.error(`${from} → ${to}\n  ${rule}`)
const failed = new Set(broken.map((b) => b.from)).size
console.log(`${modules - failed} passed, ${failed} failed, 0 skipped`)
process.exit(failed === 0 ? 0 : 1)
