import { router } from '../../procedures'
import { automatic } from './automatic'
import { deletionProtection } from './deletion-protection'
import { list } from './list'
import { pageRepair } from './page-repair'
import { recover } from './recover'
import { renewRoles } from './renew-roles'
import { show } from './show'
import { failover, switchover } from './switchover'
import { commitMode, commitModes, synchronous } from './synchronous'

export const cluster = router({
  list,
  show,
  switchover,
  failover,
  synchronous,
  automatic,
  deletionProtection,
  commitMode,
  commitModes,
  pageRepair,
  renewRoles,
  recover,
})
