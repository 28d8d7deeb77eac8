import { FaultError } from '@floe/domain'
import { Command, CommanderError } from 'commander'
import { endWithOutput } from './closed-output'
import { addAgent } from './command/agent'
import { addAudit } from './command/audit'
import { addBench } from './command/bench'
import { addCluster } from './command/cluster'
import { addConsole } from './command/console'
import { addDown } from './command/down'
import { addEngine } from './command/engine'
import { addFlashback } from './command/flashback'
import { addHost } from './command/host'
import { addIncident } from './command/incident'
import { addInstance } from './command/instance'
import { addOperation } from './command/operation'
import { addRetention } from './command/retention'
import { addRole } from './command/role'
import { addSetting } from './command/setting'
import { addStandby } from './command/standby'
import { addStatus } from './command/status'
import { addTelemetry } from './command/telemetry'
import { addTest } from './command/test'
import { addToken } from './command/token'
import { addUp } from './command/up'
import { addWebhook } from './command/webhook'
import { consoleFault } from './console/client'
import { packaged } from './installation/package'
import { exitStatusOf, printFault } from './output'

/** `./floe`: the verbs of the product and of its workshop. Exit status: 0 done, 1 failed, 2 called wrongly. */
function program(): Command {
  const own = packaged()
  const floe = new Command(own === null ? './floe' : 'floe')
    .description('Floe: PostgreSQL instances with a console, an agent and an engine of their own.')
    .helpOption('--help, -h', 'explain the command')
    .configureHelp({ showGlobalOptions: false })
    .showHelpAfterError('(add --help for an explanation)')
    .enablePositionalOptions()
    .exitOverride()
  if (own !== null) {
    // a package holds a host's agent and nothing of a console
    addAgent(floe.version(own.version))
    return floe
  }
  addUp(floe)
  addDown(floe)
  addStatus(floe)
  for (const add of [
    addTest,
    addBench,
    addEngine,
    addInstance,
    addCluster,
    addStandby,
    addSetting,
    addRole,
    addFlashback,
    addTelemetry,
    addOperation,
    addHost,
    addIncident,
    addWebhook,
    addToken,
    addRetention,
    addAudit,
    addAgent,
    addConsole,
  ])
    add(floe)
  return floe
}

endWithOutput()
// a benchmark's --json names a file
const json = process.argv.includes('--json') && process.argv[2] !== 'bench'
try {
  await program().parseAsync(process.argv)
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
