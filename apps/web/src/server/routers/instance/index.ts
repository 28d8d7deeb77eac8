import { router } from '../../procedures'
import { ordersOf } from '../operation/orders'
import { adoptReported } from './adopt-reported'
import { check } from './check'
import { create } from './create'
import { limit } from './limit'
import { limits } from './limits'
import { list } from './list'
import { show } from './show'

export const instance = router({
  list,
  show,
  check,
  create,
  adoptReported,
  limits,
  limit,
  ...ordersOf('instance'),
})
