import { FaultError } from '@floe/domain'
import { Command, CommanderError } from 'commander'
import { endWithOutput } from './closed-output'
import { consoleFault } from './console/client'
import { packaged } from './installation/package'
import { exitStatusOf, printFault } from './output'

/** Who adds each verb, in the order of the overview. Loading them all takes longer than what most of them do. */
const verbs = {
  up: async () => (await import('./command/up')).addUp,
  down: async () => (await import('./command/down')).addDown,
  status: async () => (await import('./command/status')).addStatus,
  test: async () => (await import('./command/test')).addTest,
  bench: async () => (await import('./command/bench')).addBench,
  engine: async () => (await import('./command/engine')).addEngine,
  instance: async () => (await import('./command/instance')).addInstance,
  cluster: async () => (await import('./command/cluster')).addCluster,
  standby: async () => (await import('./command/standby')).addStandby,
  setting: async () => (await import('./command/setting')).addSetting,
  role: async () => (await import('./command/role')).addRole,
  flashback: async () => (await import('./command/flashback')).addFlashback,
  telemetry: async () => (await import('./command/telemetry')).addTelemetry,
  operation: async () => (await import('./command/operation')).addOperation,
  host: async () => (await import('./command/host')).addHost,
  incident: async () => (await import('./command/incident')).addIncident,
  webhook: async () => (await import('./command/webhook')).addWebhook,
  token: async () => (await import('./command/token')).addToken,
  retention: async () => (await import('./command/retention')).addRetention,
  audit: async () => (await import('./command/audit')).addAudit,
  agent: async () => (await import('./command/agent')).addAgent,
  console: async () => (await import('./command/console')).addConsole,
}

/** `./floe`: the verbs of the product and of its workshop. Exit status: 0 done, 1 failed, 2 called wrongly. */
async function program(): Promise<Command> {
  const own = packaged()
  const floe = new Command(own === null ? './floe' : 'floe')
    .description('Floe: PostgreSQL instances with a console, an agent and an engine of their own.')
    .helpOption('--help, -h', 'explain the command')
    .configureHelp({ showGlobalOptions: false })
    .showHelpAfterError('(add --help for an explanation)')
    .enablePositionalOptions()
    .exitOverride()
  if (own !== null) floe.version(own.version)
  // a package holds a host's agent and nothing of a console
  const offered: (() => Promise<(to: Command) => unknown>)[] =
    own === null ? Object.values(verbs) : [verbs.agent]
  const named = Object.entries(verbs).find(([verb]) => verb === process.argv[2])?.[1]
  // all of them for the overview, and for what says that there is no such verb
  const chosen = named && offered.includes(named) ? [named] : offered
  for (const add of await Promise.all(chosen.map((load) => load()))) add(floe)
  return floe
}

endWithOutput()
// a benchmark's --json names a file
const json = process.argv.includes('--json') && process.argv[2] !== 'bench'
try {
  await (await program()).parseAsync(process.argv)
} catch (error) {
  if (error instanceof CommanderError) {
    // commander has printed what is wrong; help and version are no mistakes
    process.exitCode = error.exitCode === 0 ? 0 : 2
  } else {
    const fault = error instanceof FaultError ? error : consoleFault(error)
    printFault(fault.fault, json)
    process.exitCode = exitStatusOf(fault)
  }
}
