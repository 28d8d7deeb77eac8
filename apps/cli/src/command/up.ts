import type { Command } from 'commander'
import { cacheDirectory, currentHome, makeHome } from '../installation/home'
import { printResult } from '../output'
import { Durations } from '../progress/durations'
import { Progress } from '../progress/progress'
import { runLog } from '../progress/run-log'
import { holdUpLock } from '../up/lock'
import { hostAddress, port, portRange, verb } from './verb'

type Options = {
  port?: number
  agentPort?: number
  controlPort?: number
  instancePorts?: { from: number; to: number }
  listen?: string
  hostAddress?: string
  url?: string
  json?: boolean
}

/** When the launcher's script began, so that the time shown is the whole time. */
function startedAt(): number {
  const seconds = Number(process.env.FLOE_STARTED)
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1000, Date.now()) : Date.now()
}

export function progressOf(verbName: string): { progress: Progress; log: string } {
  const home = currentHome()
  makeHome(home)
  const log = runLog(home, verbName)
  const progress = new Progress({
    out: process.stderr,
    logFile: log,
    durations: new Durations(cacheDirectory()),
    startedAt: startedAt(),
  })
  return { progress, log }
}

export function addUp(program: Command): void {
  verb(
    program,
    'up',
    'set up this machine and start Floe',
    `Does everything from a fresh machine to a console that answers: installs what is missing (as root on Debian 12 or Ubuntu 24.04),
builds the engine and the console unless they are built, creates the control database, starts agent, controller and web, and
prints the console's URL. Until there is an owner it also prints a one-time set-up link. Run again, it repairs and updates.`,
  )
    .option(
      '--port <port>',
      'port of the console (default 3000); the agent and the control database take the next two',
      port,
    )
    .option('--agent-port <port>', 'port of the agent', port)
    .option('--control-port <port>', 'port of the control database, on 127.0.0.1', port)
    .option(
      '--instance-ports <from-to>',
      'ports given to instances (default: port + 2500 to port + 2999)',
      portRange,
    )
    .option('--listen <address>', 'address that the console listens on (default 127.0.0.1)')
    .option(
      '--host-address <address>',
      'address at which other hosts reach this one’s agent and instances (default 127.0.0.1: none does)',
      hostAddress,
    )
    .option('--url <url>', 'address that browsers use, where a proxy stands before the console')
    .action(async ({ json, ...asked }: Options) => {
      // certificates and all that: not worth loading for any other verb
      const [{ up }, { SETUP_LINK_HOURS }] = await Promise.all([
        import('../up/up'),
        import('../up/migrations'),
      ])
      const home = currentHome()
      const { progress, log } = progressOf('up')
      const lock = await holdUpLock(home, progress)
      try {
        const result = await up(home, asked, progress, log)
        printResult(json, result, () =>
          [
            `Floe runs at ${result.url}`,
            ...(result.setupUrl === null
              ? []
              : [
                  `Set-up link (makes the owner, once, within ${SETUP_LINK_HOURS} hours): ${result.setupUrl}`,
                ]),
            `Log of this run: ${result.log}`,
          ].join('\n'),
        )
      } finally {
        await lock.release()
      }
    })
}
