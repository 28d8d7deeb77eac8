import { type AddressInfo, createServer } from 'node:net'

/** So many TCP ports that nothing listens on at this moment. */
export async function freePorts(count: number): Promise<number[]> {
  const probes = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve, reject) => {
          const probe = createServer()
          probe.once('error', reject)
          probe.listen(0, '127.0.0.1', () => resolve(probe))
        }),
    ),
  )
  const ports = probes.map((p) => (p.address() as AddressInfo).port)
  await Promise.all(probes.map((p) => new Promise<void>((resolve) => p.close(() => resolve()))))
  return ports
}

/** The start of `count` consecutive ports of which none is taken, below the range the kernel hands out by itself. */
export async function freePortRange(count: number): Promise<{ from: number; to: number }> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const from = 12_000 + Math.floor(Math.random() * 18_000)
    const free = await Promise.all(Array.from({ length: count }, (_, i) => isFree(from + i)))
    if (free.every(Boolean)) return { from, to: from + count - 1 }
  }
  throw new Error(`no ${count} consecutive free ports`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
