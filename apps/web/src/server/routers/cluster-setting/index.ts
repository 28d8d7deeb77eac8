import { router } from '../../procedures'
import { check } from './check'
import { history } from './history'
import { list } from './list'
import { revisions } from './revisions'
import { rollBack } from './roll-back'
import { set } from './set'

export const clusterSetting = router({ list, check, set, history, revisions, rollBack })
