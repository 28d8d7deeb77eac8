import { router } from '../../procedures'
import { check } from './check'
import { history } from './history'
import { list } from './list'
import { rollBack } from './roll-back'
import { set } from './set'
import { states } from './states'

export const clusterSetting = router({ list, check, set, history, states, rollBack })
