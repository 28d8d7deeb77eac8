import { router } from '../../procedures'
import { ordersOf } from '../operation/orders'
import { drop } from './drop'
import { list } from './list'

/** Database roles of instances. */
export const role = router({ list, drop, ...ordersOf('role') })
