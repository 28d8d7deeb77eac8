import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { formatFault, toFault } from '@floe/domain'
import { createLog } from '@floe/host/log'
import { startAgent } from './agent'
import { type Enrolment, enrol } from './enrol'
import { readInstallation } from './installation'

process.title = 'floe-agent'
process.umask(0o077)
const log = createLog()

try {
  if (!process.env.FLOE_HOME) throw new Error('FLOE_HOME is not set')
  const home = resolve(process.env.FLOE_HOME)
  if (process.argv[2] === 'enrol') await enrolAndEnd(home)
  else await serve(home)
} catch (error) {
  const f = toFault(error)
  log.error('agent.failed', { fault: f })
  const words =
    (error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'the agent’s port is in use' : formatFault(f)
  process.stderr.write(`floe agent: ${words}\n`)
  process.exit(1)
}

async function serve(home: string): Promise<void> {
  const stop = await startAgent(readInstallation(home), log)
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      // tasks that run go on after the next start
      void stop().finally(() => process.exit(0))
    })
}

/** `enrol`: reads what to enrol with from standard input (a token is no argument), answers who this host is, and ends. */
async function enrolAndEnd(home: string): Promise<void> {
  let answer: object
  try {
    const asked = JSON.parse(await text(process.stdin)) as Omit<Enrolment, 'home'>
    answer = await enrol({ ...asked, home })
  } catch (error) {
    answer = { fault: toFault(error) }
    process.exitCode = 1
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}
