/**
 * Starts the built console: `FLOE_HOME=… node apps/web/start.mjs`. Address and port come from config.json, so that the
 * build knows nothing of any installation.
 */
import { existsSync, readFileSync } from 'node:fs'
import http from 'node:http'
import { join, resolve } from 'node:path'
import './peer-address.mjs'
import { listenOnSocket } from './console-socket.mjs'
import { endOnSignal } from './end-on-signal.mjs'
import { createBoundedServer, limits } from './limits.mjs'
import { keepingToHttps } from './strict-transport.mjs'
import { trustProxies } from './trusted-proxies.mjs'

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
const { webAddress, webPort, webSocket, webUrl, trustedProxies } = JSON.parse(
  readFileSync(join(process.env.FLOE_HOME, 'config.json'), 'utf8'),
)
try {
  trustProxies(trustedProxies ?? [])
} catch (error) {
  console.error(
    `${error.message}\nHINT: Name the proxies before the console, and no network that clients are in.`,
  )
  process.exit(1)
}
process.env.NODE_ENV = 'production'
process.env.NEXT_TELEMETRY_DISABLED = '1'
process.env.HOSTNAME = webAddress
process.env.PORT = String(webPort)
// longer than a proxy in front keeps an idle connection, so that it never meets a closed one
process.env.KEEP_ALIVE_TIMEOUT = '75000'

// ended below, not by Next
process.env.NEXT_MANUAL_SIG_HANDLE = '1'

// Next makes its server by itself and gives it to nobody
const createServer = http.createServer
let main
http.createServer = (answer) => {
  http.createServer = createServer
  main = createBoundedServer(keepingToHttps(webUrl, answer), limits, createServer)
  // after the port is ours: a console that runs already keeps its socket
  if (webSocket) main.once('listening', () => listenOnSocket(main, webSocket).catch(giveUp))
  return main
}
// src/server/ports.ts keeps them where all of Next's bundles find them
endOnSignal(
  () => main,
  async () => globalThis.floePorts?.denialRows.close(),
)
function giveUp(error) {
  console.error(`could not listen on the Unix socket "${webSocket}": ${error.message}`)
  process.exit(1)
}

await import(server)
