import { router } from '../../procedures'
import { check } from './check'
import { drift } from './drift'
import { history } from './history'
import { list } from './list'
import { profile } from './profile'
import { adopt, revert } from './resolve'
import { revisions } from './revisions'
import { rollBack } from './roll-back'
import { set } from './set'

export const setting = router({
  list,
  check,
  set,
  history,
  revisions,
  rollBack,
  drift,
  adopt,
  revert,
  profile,
})
