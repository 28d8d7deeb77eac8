import { router } from '../../procedures'
import { check } from './check'
import { history } from './history'
import { list } from './list'
import { set } from './set'

export const setting = router({ list, check, set, history })
