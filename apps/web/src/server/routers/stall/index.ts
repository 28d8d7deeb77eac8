import { router } from '../../procedures'
import { list } from './list'

export const stall = router({ list })
