/**
 * Starts the built console: `FLOE_HOME=… node apps/web/start.mjs`. Address and port come from config.json, so that the
 * build knows nothing of any installation.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import './peer-address.mjs'

const home = process.env.FLOE_HOME
if (!home) {
  console.error('FLOE_HOME is not set\nHINT: Start the console with "./floe up".')
  process.exit(1)
}
process.env.FLOE_HOME = resolve(home)
const server = join(import.meta.dirname, '.next/standalone/apps/web/server.js')
if (!existsSync(server)) {
  console.error('the console is not built\nHINT: Run "npm run build --workspace @floe/web".')
  process.exit(1)
}
const { webAddress, webPort } = JSON.parse(readFileSync(join(process.env.FLOE_HOME, 'config.json'), 'utf8'))
process.env.NODE_ENV = 'production'
process.env.NEXT_TELEMETRY_DISABLED = '1'
process.env.HOSTNAME = webAddress
process.env.PORT = String(webPort)
// longer than a proxy in front keeps an idle connection, so that it never meets a closed one
process.env.KEEP_ALIVE_TIMEOUT = '75000'

// Next waits for open connections when asked to end; a live stream would keep it for ever
for (const signal of ['SIGTERM', 'SIGINT'])
  process.on(signal, () => setTimeout(() => process.exit(0), 500).unref())

await import(server)
