import { router } from '../../procedures'
import { cancel } from './cancel'
import { list } from './list'
import { retry } from './retry'
import { show } from './show'
import { watch } from './watch'

export const operation = router({ list, show, cancel, retry, watch })
