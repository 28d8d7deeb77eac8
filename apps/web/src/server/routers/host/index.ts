import { router } from '../../procedures'
import { list } from './list'

export const host = router({ list })
