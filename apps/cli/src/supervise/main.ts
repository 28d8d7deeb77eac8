import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { identify } from '@floe/host/process'
import { createConcurrently, Logger, RestartProcess } from 'concurrently'
import { checkoutDirectory, currentHome, isInstallation, readConfiguration } from '../installation/home'
import { liveRecord, type ProcessName, processesOf, writeRecord } from '../process/records'
import { keepLogsSmall } from './rotate-logs'
import { superviseProcess } from './spawn'

/**
 * The supervisor: keeps the control database, agent, controller and web running. It owns none of them: they are
 * sessions of their own, and a new supervisor takes over what it finds running. Ending it (`./floe down` does, first)
 * stops nothing.
 */
const RESTART_DELAY_MS = 1_000

const home = currentHome()
const checkout = checkoutDirectory()
const configuration = readConfiguration(home)
if (configuration === null) throw new Error(`there is no "${home.configFile}"`)
const installation = isInstallation(configuration) ? configuration : null
const kept = processesOf(installation)

const other = liveRecord(home, 'supervisor')
if (other !== null) {
  console.error(`another supervisor runs (pid ${other.pid})`)
  process.exit(1)
}
const self = identify(process.pid)
if (self === null) throw new Error('could not read /proc')
writeRecord(home, 'supervisor', { ...self, startedAt: Date.now(), mark: '' })

const log = openSync(join(home.log, 'supervisor.log'), 'a', 0o640)
const say = (event: string, fields: Record<string, unknown> = {}) =>
  writeSync(log, `${JSON.stringify({ time: new Date().toISOString(), event, ...fields })}\n`)
for (const event of ['uncaughtException', 'unhandledRejection'] as const)
  process.on(event, (error) => {
    say('supervisor.failed', { error: String(error instanceof Error ? (error.stack ?? error) : error) })
    process.exit(1)
  })
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.on(signal, () => {
    say('supervisor.ended', { signal })
    process.exit(0)
  })
// the terminal that ran "up" may go
process.on('SIGHUP', () => {})

say('supervisor.started', { pid: process.pid })
keepLogsSmall(home, say)
const logger = new Logger({ hide: [...kept] })
createConcurrently(
  kept.map((name) => ({ name, command: name })),
  {
    // each "command" is a name; this starts that process, or takes over the one that runs
    spawn: (name) => superviseProcess({ home, checkout, installation, say }, name as ProcessName),
    controllers: [new RestartProcess({ tries: -1, delay: RESTART_DELAY_MS, logger })],
    logger,
    kill: () => {},
  },
).result.catch((error: unknown) => {
  say('supervisor.failed', { error: String(error) })
  process.exit(1)
})
