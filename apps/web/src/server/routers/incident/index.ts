import { router } from '../../procedures'
import { acknowledge } from './acknowledge'
import { list } from './list'
import { show } from './show'
import { watch } from './watch'

export const incident = router({ list, show, acknowledge, watch })
