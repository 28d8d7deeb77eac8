import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:http'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'

const children: ReturnType<typeof spawn>[] = []
afterEach(() => {
  for (const child of children) child.kill('SIGKILL')
})

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s ends the console though a stream is open, and what it holds is written first',
  async (signal) => {
    const program = `
      import { endOnSignal } from ${JSON.stringify(join(import.meta.dirname, '../../end-on-signal.mjs'))}
      import { createServer } from 'node:http'
      const server = createServer((request, response) => response.write('open'))
      endOnSignal(() => server, async () => {
        await new Promise((resolve) => setTimeout(resolve, 100))
        console.log('written')
      })
      server.listen(0, '127.0.0.1', () => console.log(server.address().port))`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program])
    children.push(child)
    const [port] = await once(child.stdout, 'data')
    const [stream] = await once(get({ host: '127.0.0.1', port: Number(port) }), 'response')
    stream.on('error', () => {})
    let said = ''
    child.stdout.on('data', (text) => (said += text))
    child.kill(signal)
    expect(await once(child, 'close')).toEqual([0, null])
    expect(said).toBe('written\n')
  },
)
