import { createServer, type Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'

const SSL_REQUEST = 80_877_103
/** AuthenticationCleartextPassword: whoever believes this server sends the password next. */
const ASK_FOR_PASSWORD = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3])

export type TlsServer = {
  port: number
  /** Everything that clients said, over TLS or before it, but their request for TLS. */
  received(): string
  close(): Promise<void>
}

/**
 * Poses as a PostgreSQL server: does TLS with the certificate and key (null: says that it has none), takes what is said
 * then, and asks for the password in clear.
 */
export async function startTlsServer(identity: string | null): Promise<TlsServer> {
  let received = ''
  const sockets = new Set<Socket>()
  const take = (to: Socket) => (data: Buffer) => {
    received += data.toString('latin1')
    to.write(ASK_FOR_PASSWORD)
  }
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.once('data', (data) => {
      if (data.length !== 8 || data.readInt32BE(4) !== SSL_REQUEST) {
        take(socket)(data)
        socket.on('data', take(socket))
        return
      }
      if (identity === null) {
        socket.on('data', take(socket))
        socket.write('N')
        return
      }
      socket.write('S')
      const secured = new TLSSocket(socket, {
        isServer: true,
        secureContext: createSecureContext({ cert: identity, key: identity }),
      })
      secured.on('error', () => {})
      secured.on('data', take(secured))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, resolve))
  return {
    port: (server.address() as { port: number }).port,
    received: () => received,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
