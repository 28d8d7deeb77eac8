/**
 * What the console's server takes of anybody, before it is known who that is: how much, how slowly, how often at once.
 * Everything that bounds requests as such stands here; what a call may ask is its procedure's matter.
 */
import http from 'node:http'
import { isTrustedProxy } from './trusted-proxies.mjs'

const kB = 1024
const MB = 1024 * kB

export const limits = {
  /** A request's head and the whole of it have to be here by then. Answers may last: streams do. */
  headMs: 10_000,
  requestMs: 25_000,
  /** How often that is looked at. */
  lookEveryMs: 2_000,
  /** A connection on which nothing moves, a stream that nobody reads; a living stream says something every 3 s. */
  silentMs: 120_000,
  headBytes: 16 * kB,
  headers: 100,
  connections: 2_000,
  /** Of one address; a trusted proxy has everybody behind it, and this machine's own may be one. */
  connectionsOfPeer: 500,
  connectionsOfProxy: 1_800,
  /** Requests of one connection that are being answered: browsers send one at a time. */
  requestsOfConnection: 16,
  /** Bodies that are being received or worked on, together and of one address. */
  bodiesBytes: 64 * MB,
  bodiesOfPeerBytes: 8 * MB,
  /** How long what is still coming is thrown away, so that a client that sends reads the refusal. */
  lingerMs: 1_000,
}

/** Calls may hold many settings; everything else that has a body is a form. */
const bodyBytesMax = (url) =>
  url.startsWith('/api/trpc/') && !url.startsWith('/api/trpc/setup.') ? MB : 64 * kB

const tooLarge = (max) => ({
  code: 'request.too_large',
  message: 'the request is too large',
  detail: `Its body may have at most ${max / kB} kB.`,
})
const tooMuch = {
  code: 'request.too_much_at_once',
  message: 'too much is being sent to the console at once',
  hint: 'Try again.',
}

const mayBeProxy = (peer) =>
  peer === 'local' || peer === '::1' || /^(::ffff:)?127\./.test(peer) || isTrustedProxy(peer)
const peerOf = (socket) => socket.remoteAddress ?? 'local'

/** A server that has `answer` see only what is within the bounds. */
export function createBoundedServer(answer, given = limits, createServer = http.createServer) {
  const server = createServer(serverOptions(given), boundRequests(answer, given))
  boundConnections(server, given)
  return server
}

/** Options of `http.createServer`. */
export const serverOptions = (given = limits) => ({
  headersTimeout: given.headMs,
  requestTimeout: given.requestMs,
  connectionsCheckingInterval: given.lookEveryMs,
  maxHeaderSize: given.headBytes,
})

/** Bounds the connections of a server made with `serverOptions`. */
export function boundConnections(server, given = limits) {
  server.maxConnections = given.connections
  server.maxHeadersCount = given.headers
  server.timeout = given.silentMs
  const ofPeer = new Tally()
  server.on('connection', (socket) => {
    const peer = peerOf(socket)
    const max = mayBeProxy(peer) ? given.connectionsOfProxy : given.connectionsOfPeer
    if (ofPeer.of(peer) >= max) return void socket.destroy()
    ofPeer.add(peer, 1)
    socket.once('close', () => ofPeer.add(peer, -1))
  })
}

function boundRequests(answer, given = limits) {
  const bodies = new Tally()
  const onConnection = new WeakMap()
  return (request, response) => {
    const { socket } = request
    const running = onConnection.get(socket) ?? 0
    if (running >= given.requestsOfConnection) return void socket.destroy()
    onConnection.set(socket, running + 1)
    const peer = peerOf(socket)
    let received = 0
    let kept = 0
    response.once('close', () => {
      onConnection.set(socket, onConnection.get(socket) - 1)
      bodies.add('', -kept)
      bodies.add(peer, -kept)
      kept = 0
    })

    const max = bodyBytesMax(request.url)
    const tooMany = (bytes) =>
      bodies.of('') + bytes > given.bodiesBytes ||
      (!mayBeProxy(peer) && bodies.of(peer) + bytes > given.bodiesOfPeerBytes)
    const stated = Number(request.headers['content-length'] ?? 0)
    let refused = false
    const refuse = (status, fault) => {
      refused = true
      // an answer that has begun can say nothing else any more
      if (response.headersSent) return void socket.destroy()
      // Node closes once that is written; a close before all that was sent is read resets, and takes the answer with it
      socket.destroySoon = () => {
        socket.end()
        setTimeout(() => socket.destroy(), given.lingerMs).unref()
      }
      response.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
      response.end(JSON.stringify(fault))
    }

    // counted where the parser hands them over: who reads the body, and whether anybody does, makes no difference
    const push = request.push
    request.push = (chunk, encoding) => {
      if (refused) return true
      if (chunk === null) return push.call(request, null)
      received += chunk.length
      if (received > max) {
        refuse(413, tooLarge(max))
        return true
      }
      if (!response.closed) {
        if (tooMany(chunk.length)) {
          refuse(503, tooMuch)
          return true
        }
        kept += chunk.length
        bodies.add('', chunk.length)
        bodies.add(peer, chunk.length)
      }
      return push.call(request, chunk, encoding)
    }
    if (stated > max) {
      request.resume()
      return refuse(413, tooLarge(max))
    }
    answer(request, response)
  }
}

/** Numbers by key; those that are 0 take no memory. */
class Tally {
  #numbers = new Map()

  of(key) {
    return this.#numbers.get(key) ?? 0
  }

  add(key, more) {
    const number = this.of(key) + more
    if (number === 0) this.#numbers.delete(key)
    else this.#numbers.set(key, number)
  }
}
