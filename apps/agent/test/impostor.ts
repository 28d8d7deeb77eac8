import type { AddressInfo } from 'node:net'
import { connect as connectPlainly, createServer, type Socket } from 'node:net'
import { connect, TLSSocket } from 'node:tls'
import { makeSelfSignedIdentity } from '@floe/authority/self-signed'

/** What libpq says first to ask for TLS: a length of 8, then the number 80877103. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])

const said = (socket: Socket) => new Promise<Buffer>((resolve) => socket.once('data', resolve))

/**
 * Stands between a member and the one it asks: ends TLS with a certificate of its own, and passes everything on to the real
 * one over another TLS connection.
 */
export async function startImpostor(realPort: number) {
  const identity = await makeSelfSignedIdentity('impostor')
  const sockets = new Set<Socket>()
  const kept = <T extends Socket>(socket: T): T => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    return socket
  }
  let passedOn = 0
  const server = createServer(async (caller) => {
    kept(caller)
    await said(caller)
    caller.write('S')
    const near = kept(new TLSSocket(caller, { isServer: true, cert: identity, key: identity }))
    const real = kept(connectPlainly(realPort, '127.0.0.1'))
    real.write(SSL_REQUEST)
    await said(real)
    const far = kept(connect({ socket: real, rejectUnauthorized: false }))
    far.once('data', () => passedOn++)
    near.pipe(far)
    far.pipe(near)
    near.once('close', () => far.destroy())
    far.once('close', () => near.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    /** Connections in which the real one was heard. */
    passedOn: () => passedOn,
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
