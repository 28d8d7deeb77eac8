import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { breakingChanges, contractDocument } from '../src/contract-document'

// Writes the golden file after an addition to the contract: `npm run golden -w @floe/agent-contract`. Refuses what breaks.
const path = new URL('../golden/contract.json', import.meta.url)
const now = contractDocument()
const breaking = existsSync(path) ? breakingChanges(JSON.parse(readFileSync(path, 'utf8')), now) : []
if (breaking.length > 0) {
  process.stderr.write(`the contract may only grow:\n${breaking.join('\n')}\n`)
  process.exit(1)
}
writeFileSync(path, `${JSON.stringify(now, null, 2)}\n`)
