import type { Command } from 'commander'
import { readOwnerPassword, readRootCertificates } from '../control-database/external'
import { readExternalAddress, systemRootCertificates } from '../control-database/external-address'
import { cacheDirectory, currentHome, makeHome } from '../installation/home'
import { printResult } from '../output'
import { Durations } from '../progress/durations'
import { Progress } from '../progress/progress'
import { runLog } from '../progress/run-log'
import { holdUpLock } from '../up/lock'
import { hostAddress, port, portRange, proxyAddress, verb } from './verb'

type Options = {
  port?: number
  agentPort?: number
  controlPort?: number
  instancePorts?: { from: number; to: number }
  listen?: string
  hostAddress?: string
  url?: string
  trustedProxy?: string[]
  atBoot?: boolean
  controlDatabase?: string
  controlDatabasePasswordFile?: string
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
prints the console's URL. Until there is an owner it also prints a one-time set-up link. Run again, it repairs and updates.

The control database is an engine that Floe runs; it is reached by its socket only. To use a PostgreSQL database of your own, give --control-database at the first run; later runs keep it.`,
  )
    .option(
      '--port <port>',
      'port of the console (default 3000); the agent takes the next one, the control database’s socket is named by the one after',
      port,
    )
    .option('--agent-port <port>', 'port of the agent', port)
    .option('--control-port <port>', 'number in the name of the control database’s socket', port)
    .option(
      '--instance-ports <from-to>',
      'ports given to instances (default: port + 2500 to port + 2999)',
      portRange,
    )
    .option('--listen <address>', 'address that the console listens on (default 127.0.0.1)')
    .option(
      '--host-address <address>',
      'address at which other hosts reach this one’s agent and instances (default 127.0.0.1: none can)',
      hostAddress,
    )
    .option('--url <url>', 'address that browsers use, if the console is behind a proxy')
    .option('--at-boot', 'start Floe with this machine, by a unit of systemd (as root); later runs keep it')
    .option('--no-at-boot', 'no more')
    .option(
      '--trusted-proxy <address...>',
      'addresses or networks of proxies in front of the console, whose X-Forwarded-For is believed; no network that clients are in. Kept for later runs',
      proxyAddress,
    )
    .option(
      '--control-database <url>',
      'an empty PostgreSQL database that Floe does not run: postgresql://OWNER@HOST/NAME?sslmode=verify-full&sslrootcert=FILE (without sslrootcert: the authorities that this system trusts)',
    )
    .option(
      '--control-database-password-file <file>',
      'file with its owner’s password, which is kept for later runs; "-" reads it from standard input',
    )
    .action(async (options: Options) => {
      const { json, controlDatabase, controlDatabasePasswordFile, trustedProxy, ...rest } = options
      // certificates and all that: not worth loading for any other verb
      const [{ up }, { SETUP_LINK_HOURS }] = await Promise.all([
        import('../up/up'),
        import('../up/migrations'),
      ])
      // not by the parser of options, which repeats what it refuses: it may hold a password
      const external = controlDatabase === undefined ? undefined : readExternalAddress(controlDatabase)
      const asked = {
        ...rest,
        ...(trustedProxy && { trustedProxies: trustedProxy }),
        ...(external && { controlDatabase: external }),
      }
      const certificates =
        external && readRootCertificates(external.rootCertificates ?? systemRootCertificates)
      const given = {
        ...(controlDatabasePasswordFile !== undefined && {
          ownerPassword: readOwnerPassword(controlDatabasePasswordFile),
        }),
        ...(external?.rootCertificates && { rootCertificates: certificates }),
      }
      const home = currentHome()
      const { progress, log } = progressOf('up')
      const lock = await holdUpLock(home, progress)
      try {
        const result = await up(home, asked, given, progress, log)
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
