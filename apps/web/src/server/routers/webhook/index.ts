import { router } from '../../procedures'
import { add } from './add'
import { deliveries } from './deliveries'
import { list } from './list'
import { remove } from './remove'
import { test } from './test'

export const webhook = router({ list, deliveries, add, remove, test })
