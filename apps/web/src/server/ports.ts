import { createDatabase, type Database, findHostAgent, findInstanceAgent } from '@floe/db'
import { Agents } from './agents'
import { type Auth, type AuthParts, createAuth } from './auth/auth'
import { CHECK_TIMES, type CheckTimes } from './await-check'
import { ChangeWatch } from './changes'
import { DenialRows } from './denial-rows'
import { controlDatabaseUrl, type InstallationFiles, readInstallation } from './installation'
import { Feeds } from './live/feeds'
import { log } from './log'

/** Everything a procedure may act through. One per process; tests make their own. */
export type Ports = {
  files: InstallationFiles
  database: Database
  auth: Auth
  agents: Agents
  feeds: Feeds
  changes: ChangeWatch
  denialRows: DenialRows
  checkTimes: CheckTimes
  close(): Promise<void>
}

/** `url`: of the control database, where it is not the installation's own. */
export function createPorts(
  files: InstallationFiles,
  url = controlDatabaseUrl(files),
  parts?: AuthParts,
): Ports {
  const database = createDatabase({
    connectionString: url,
    applicationName: 'floe web',
    onIdleError: (error) => log.warn('database.connection_lost', { message: error.message }),
  })
  const changes = new ChangeWatch(url)
  const agents = new Agents({
    authority: files.authority,
    identity: files.identity,
    find: (instanceId) => findInstanceAgent(database.pool, instanceId),
    findHost: (hostId) => findHostAgent(database.pool, hostId),
    onFirst: () =>
      changes.onChange((change) => {
        if (change !== 'all' && change.noun !== 'host') return
        agents
          .hostChanged(change === 'all' ? null : change.id)
          .catch((err: unknown) => log.warn('host.not_looked_up', { err }))
      }),
  })
  const denialRows = new DenialRows(database)
  const feeds = new Feeds((instanceId) => agents.feedSource(instanceId))
  return {
    files,
    database,
    auth: createAuth(files, database, denialRows, parts),
    agents,
    feeds,
    changes,
    denialRows,
    checkTimes: CHECK_TIMES,
    async close() {
      await denialRows.close()
      feeds.close()
      agents.close()
      await changes.close()
      await database.close()
    },
  }
}

// Next bundles every route on its own: the process's ports live where all bundles find them, and start.mjs at the end
const held = globalThis as unknown as { floePorts?: Ports }

/** The ports of this process, made at the first request. Throws `installation.missing` when FLOE_HOME says nothing. */
export function ports(): Ports {
  if (!held.floePorts) {
    held.floePorts = createPorts(readInstallation())
    log.info('web.ready', { installationId: held.floePorts.files.installation.installationId })
  }
  return held.floePorts
}
