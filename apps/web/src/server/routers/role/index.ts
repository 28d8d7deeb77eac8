import { router } from '../../procedures'
import { change } from './change'
import { create } from './create'
import { drop } from './drop'
import { list } from './list'

/** Database roles of instances. */
export const role = router({ list, create, change, drop })
