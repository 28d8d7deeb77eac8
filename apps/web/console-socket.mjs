/**
 * The console's second door: a Unix socket in a directory that only its own user may write, so that the command line of
 * this machine can tell whom it talks to. A loopback port may be anybody's while the console is down.
 */
import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import http from 'node:http'
import { boundConnections, serverOptions } from './limits.mjs'

/** Listens at `path` as well and has `main` answer. The directory is the launcher's to make. */
export async function listenOnSocket(main, path) {
  removeStale(path)
  const server = http.createServer(serverOptions(), (request, response) =>
    main.emit('request', request, response),
  )
  boundConnections(server)
  server.keepAliveTimeout = main.keepAliveTimeout
  await new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  // who may come in is the token's to say, as at the port
  chmodSync(path, 0o666)
  removeAtExit(path)
  return server
}

/** What ends by itself leaves no file behind, unless a successor has put its own there meanwhile. */
function removeAtExit(path) {
  const own = lstatSync(path).ino
  process.once('exit', () => {
    if (lstatSync(path, { throwIfNoEntry: false })?.ino === own) unlinkSync(path)
  })
}

/** The file that a killed console left behind. A user who could replace it would control the console. */
function removeStale(path) {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return
  if (!found.isSocket()) throw new Error(`"${path}" is in the way: it is not a socket`)
  unlinkSync(path)
}
