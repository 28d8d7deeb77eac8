import { router } from './procedures'
import { account } from './routers/account'
import { audit } from './routers/audit'
import { checkpoint } from './routers/checkpoint'
import { cluster } from './routers/cluster'
import { controlDatabase } from './routers/control-database'
import { flashback } from './routers/flashback'
import { host } from './routers/host'
import { incident } from './routers/incident'
import { instance } from './routers/instance'
import { keptAside } from './routers/kept-aside'
import { operation } from './routers/operation'
import { protection } from './routers/protection'
import { retention } from './routers/retention'
import { role } from './routers/role'
import { setting } from './routers/setting'
import { setup } from './routers/setup'
import { sharedServer } from './routers/shared-server'
import { stall } from './routers/stall'
import { standby } from './routers/standby'
import { telemetry } from './routers/telemetry'
import { token } from './routers/token'
import { webhook } from './routers/webhook'

/** The console's API: the same nouns and verbs as the command line. */
export const appRouter = router({
  setup,
  account,
  host,
  instance,
  cluster,
  stall,
  standby,
  keptAside,
  protection,
  flashback,
  sharedServer,
  setting,
  role,
  operation,
  telemetry,
  checkpoint,
  incident,
  webhook,
  token,
  retention,
  audit,
  controlDatabase,
})
export type AppRouter = typeof appRouter
