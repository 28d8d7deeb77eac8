import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { commandOf, listPids, programOf } from '@floe/host/process-facts'

/** True when the port can be bound on the address. */
export function portIsFree(port: number, address = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false)
      else reject(error)
    })
    server.listen({ port, host: address, exclusive: true }, () => server.close(() => resolve(true)))
  })
}

/** Inodes of the sockets that listen on a port, from the kernel's tables. */
function listeningInodes(port: number): Set<string> {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0')
  const inodes = new Set<string>()
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    let text = ''
    try {
      text = readFileSync(table, 'utf8')
    } catch {
      continue
    }
    for (const line of text.split('\n').slice(1)) {
      const fields = line.trim().split(/\s+/)
      // fields: slot, local address, remote address, state (0A: listening), …, inode
      if (fields[1]?.endsWith(`:${wanted}`) && fields[3] === '0A' && fields[9]) inodes.add(fields[9])
    }
  }
  return inodes
}

/** Who listens on a port, as `name (pid 123)`; null when that is not known (another user's process). */
export function portOwner(port: number): string | null {
  const inodes = listeningInodes(port)
  if (inodes.size === 0) return null
  for (const pid of listPids()) {
    try {
      for (const fd of readdirSync(`/proc/${pid}/fd`)) {
        const target = readlinkSync(`/proc/${pid}/fd/${fd}`)
        if (target.startsWith('socket:[') && inodes.has(target.slice(8, -1))) {
          const command = commandOf(pid).join(' ')
          const shown = command.length > 80 ? `${command.slice(0, 79)}…` : command || programOf(pid)
          if (shown) return `${shown} (pid ${pid})`
        }
      }
    } catch {
      // gone, or not ours to look at
    }
  }
  return null
}
