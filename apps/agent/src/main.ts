import './small-heap'
import { resolve } from 'node:path'
import { formatFault, toFault } from '@floe/domain'
import { startAgent } from './agent'
import { readInstallation } from './installation'
import { createLog } from './log'

process.title = 'floe-agent'
process.umask(0o077)
const log = createLog()

try {
  const home = process.env.FLOE_HOME
  if (!home) throw new Error('FLOE_HOME is not set')
  const stop = await startAgent(readInstallation(resolve(home)), log)
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      // tasks that run go on after the next start
      void stop().finally(() => process.exit(0))
    })
} catch (error) {
  const f = toFault(error)
  log.error('agent.failed', { fault: f })
  const text =
    (error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'the agent’s port is in use' : formatFault(f)
  process.stderr.write(`floe agent: ${text}\n`)
  process.exit(1)
}
