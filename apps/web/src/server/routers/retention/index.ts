import { router } from '../../procedures'
import { list } from './list'
import { set } from './set'

export const retention = router({ list, set })
