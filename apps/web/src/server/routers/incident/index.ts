import { router } from '../../procedures'
import { list } from './list'

export const incident = router({ list })
