import { router } from '../../procedures'
import { ordersOf } from '../operation/orders'
import { activity } from './activity'
import { lost } from './lost'
import { read } from './read'
import { results } from './results'
import { rows } from './rows'
import { tables } from './tables'

export const flashback = router({
  read,
  tables,
  activity,
  lost,
  results,
  rows,
  ...ordersOf('flashback'),
})
