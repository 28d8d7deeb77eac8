import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { metrics } from '../src/metric-catalogue'

// Writes the golden file after a metric was added: `npm run golden -w @floe/telemetry`. Refuses whatever is not an addition.
const path = new URL('../golden/metrics.txt', import.meta.url)
const now = metrics.map(({ name }) => `${name}\n`).join('')
if (existsSync(path) && !now.startsWith(readFileSync(path, 'utf8'))) {
  process.stderr.write('a metric may only be added, at the end of the catalogue\n')
  process.exit(1)
}
writeFileSync(path, now)
