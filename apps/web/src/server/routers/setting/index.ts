import { router } from '../../procedures'
import { check } from './check'
import { drift } from './drift'
import { history } from './history'
import { list } from './list'
import { adopt, revert } from './resolve'
import { rollBack } from './roll-back'
import { set } from './set'
import { states } from './states'

export const setting = router({ list, check, set, history, states, rollBack, drift, adopt, revert })
