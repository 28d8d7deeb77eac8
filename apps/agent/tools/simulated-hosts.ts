import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { SimulatedHost } from './simulated/simulated-host'

// Many hosts without engines in one process, for load tests of the console: `tsx tools/simulated-hosts.ts` reads one line
// of JSON from standard input, enrols each host by its token, prints "ready", and serves until standard input is closed.
const Order = z.object({
  /** Where each host keeps its certificate and key. */
  directory: z.string(),
  /** Address of the console and sha256 of its authority. */
  console: z.url(),
  authority: z.string(),
  hosts: z.array(z.object({ name: z.string(), token: z.string() })),
})

let input = ''
process.stdin.setEncoding('utf8')
process.stdin.on('end', () => process.exit(0))
const order = Order.parse(
  JSON.parse(
    await new Promise<string>((resolve) => {
      process.stdin.on('data', (text: string) => {
        input += text
        if (input.includes('\n')) resolve(input)
      })
    }),
  ),
)
const { console, authority } = order
await Promise.all(
  order.hosts.map(({ name, token }, i) => {
    const home = join(order.directory, name)
    mkdirSync(home, { recursive: true })
    return new SimulatedHost({ name, home, console, authority, token, firstPlace: i * 1_000 }).start()
  }),
)
process.stdout.write('ready\n')
