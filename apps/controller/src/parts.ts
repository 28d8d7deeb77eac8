import type { Database } from '@floe/db'
import type { Log } from '@floe/host/log'
import type { Agents } from './agents'
import type { DatabaseWatch } from './loop'
import type { LeaseTimes } from './operation-loop'
import type { Signing } from './signing'
import type { Standstills } from './standstills'

/** What the controller's loops share; each asks for what it uses. */
export type ControllerParts = {
  db: Database
  agents: Agents
  log: Log
  database: DatabaseWatch
  times: LeaseTimes
  /** This controller, as leases name it. */
  owner: string
  signing: Signing
  standstills: Pick<Standstills, 'now' | 'since'>
}
