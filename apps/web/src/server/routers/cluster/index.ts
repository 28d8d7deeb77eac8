import { router } from '../../procedures'
import { list } from './list'
import { pageRepair } from './page-repair'
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
  commitMode,
  commitModes,
  pageRepair,
  renewRoles,
})
