import { router } from '../../procedures'
import { list } from './list'
import { running } from './running'

export const checkpoint = router({ list, running })
