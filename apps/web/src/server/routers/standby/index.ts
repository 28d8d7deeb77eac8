import { router } from '../../procedures'
import { ordersOf } from '../operation/orders'
import { reclone, rejoin, remove } from './change'
import { create } from './create'

export const standby = router({ create, remove, rejoin, reclone, ...ordersOf('standby') })
