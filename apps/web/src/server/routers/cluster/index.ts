import { router } from '../../procedures'
import { automatic } from './automatic'
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
  commitMode,
  commitModes,
  pageRepair,
  renewRoles,
  recover,
})
