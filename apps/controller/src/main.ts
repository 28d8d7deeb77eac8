import { agentUrl, formatFault, toFault } from '@floe/domain'
import { createLog } from '@floe/host/log'
import { startController } from './controller'
import { readInstallation } from './installation'
import { addressRule } from './webhook-address'

/** Passes in flight may end; what hangs longer is taken up by the next controller. */
const STOP_BOUND_MS = 15_000

const home = process.env.FLOE_HOME
if (!home) {
  process.stderr.write('FLOE_HOME is not set\n')
  process.exit(2)
}
const log = createLog()
try {
  const installation = readInstallation(home)
  const controller = startController({
    connectionString: installation.connectionString,
    authority: installation.authority,
    identity: () => installation.identities.controller.read(),
    authSecret: installation.authSecret,
    webhookRule: addressRule(
      [installation.hostAddress, installation.webAddress, new URL(installation.webUrl).hostname],
      installation.webhookAddresses ?? [],
    ),
    renew: [
      { right: 'task', file: installation.identities.controller },
      { right: 'read', file: installation.identities.web },
    ],
    host: {
      hostId: installation.hostId,
      name: installation.hostName,
      agentUrl: agentUrl(installation),
    },
    log,
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => {
      log.info('controller.stopping', { signal })
      setTimeout(() => {
        log.error('controller.stopped_late', { boundMs: STOP_BOUND_MS })
        process.exit(1)
      }, STOP_BOUND_MS).unref()
      void controller.stop().then(() => process.exit(0))
    })
} catch (error) {
  process.stderr.write(`${formatFault(toFault(error))}\n`)
  process.exit(1)
}
