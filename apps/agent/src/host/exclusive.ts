import { createHash } from 'node:crypto'
import { createServer } from 'node:net'
import { fault } from '@floe/domain'

/**
 * Makes this process the only agent of an installation until it ends, however it ends: the kernel frees an abstract
 * socket with its process, so no lock is ever stale. Two agents would write the same rings and run the same tasks.
 */
export function becomeTheOnlyAgent(home: string): Promise<() => void> {
  const name = `\0floe-agent-${createHash('sha256').update(home).digest('hex').slice(0, 32)}`
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? fault('agent.already_running', 'another agent runs for this installation', {
              detail: `It uses FLOE_HOME "${home}".`,
              hint: 'Stop it first, or give this one a FLOE_HOME of its own.',
            })
          : error,
      ),
    )
    server.listen({ path: name }, () => {
      server.unref()
      resolve(() => server.close())
    })
  })
}
