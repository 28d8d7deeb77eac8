import { createServer } from 'node:net'
import { fault } from '@floe/domain'

/** True when a TCP port can be listened on at 127.0.0.1 and at any address. */
export async function isPortFree(port: number): Promise<boolean> {
  for (const host of ['127.0.0.1', '0.0.0.0']) {
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer()
      probe.once('error', () => resolve(false))
      probe.listen({ port, host, exclusive: true }, () => probe.close(() => resolve(true)))
    })
    if (!free) return false
  }
  return true
}

/** The lowest port of the range that no instance owns and nothing listens on. */
export async function choosePort(
  range: { from: number; to: number },
  owned: ReadonlySet<number>,
  isFree: (port: number) => Promise<boolean> = isPortFree,
): Promise<number> {
  for (let port = range.from; port <= range.to; port++)
    if (!owned.has(port) && (await isFree(port))) return port
  throw fault('host.no_free_port', `no free port between ${range.from} and ${range.to}`, {
    detail: `${owned.size} of them belong to instances; something else listens on the others.`,
    hint: 'Delete an instance, or widen the range with "./floe up --instance-ports".',
  })
}
