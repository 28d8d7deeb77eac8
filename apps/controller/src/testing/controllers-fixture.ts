import { randomUUID } from 'node:crypto'
import { createTestDatabase, type TestDatabase } from '@floe/db/testing'
// tells the type of what the suite's set-up provides
import type {} from '@floe/db/testing/engine-for-suite'
import type { Log } from '@floe/host/log'
import { makeTestAuthority } from '@floe/testkit'
import { type ControllerOptions, startController } from '../controller'
import type { LeaseTimes } from '../operation-loop'
import { addressRule } from '../webhook-address'
import { FakeAgent } from './fake-agent'

export const actor = { id: 'tester', name: 'Tester' }

/** Log that keeps its lines for a test to look at. */
export function keptLog(): Log & { lines: { level: string; event: string; fields: object }[] } {
  const lines: { level: string; event: string; fields: object }[] = []
  const keep = (level: string) => (event: string, fields?: object) => {
    lines.push({ level, event, fields: fields ?? {} })
  }
  return { lines, info: keep('info'), warn: keep('warn'), error: keep('error') }
}

/** A control database, one or more hosts with agent doubles, and controllers to start and stop. */
export async function controllersFixture(engineConnectionString: string) {
  const db: TestDatabase = await createTestDatabase(engineConnectionString)
  const authority = await makeTestAuthority()
  const identity = await authority.console('task')
  const doubles: FakeAgent[] = []
  const controllers: ReturnType<typeof startController>[] = []

  async function addHost(): Promise<FakeAgent> {
    const double = new FakeAgent(randomUUID())
    await double.listen(authority)
    await db.pool.query('INSERT INTO host (id, name, "agentUrl") VALUES ($1, $2, $3)', [
      double.hostId,
      `host-${double.hostId.slice(0, 8)}`,
      double.url,
    ])
    doubles.push(double)
    return double
  }

  const first = await addHost()
  return {
    db,
    authority,
    identity,
    host: first,
    addHost,
    reopen: (double: FakeAgent) => double.listen(authority),
    /** Tests count tasks: hosts are checked by themselves only where one says so. */
    start(
      times: LeaseTimes = { leaseMs: 1_500, renewMs: 400 },
      log: Log = keptLog(),
      more: Pick<ControllerOptions, 'checksHosts' | 'patience' | 'fenceAgainMs'> = { checksHosts: false },
    ) {
      const controller = startController({
        ...more,
        connectionString: db.as.controller.connectionString,
        authority: authority.signing,
        authSecret: 'a secret of the tests',
        // receivers of the tests are on this machine
        webhookRule: addressRule([], ['127.0.0.1']),
        identity: () => identity,
        host: { hostId: first.hostId, name: `host-${first.hostId.slice(0, 8)}`, agentUrl: first.url },
        log,
        times,
      })
      controllers.push(controller)
      return controller
    },
    async remove() {
      await Promise.all(controllers.map((c) => c.stop()))
      await Promise.all(doubles.map((d) => d.close()))
      await db.drop()
    },
  }
}
