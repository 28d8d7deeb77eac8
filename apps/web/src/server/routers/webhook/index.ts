import { router } from '../../procedures'
import { add } from './add'
import { list } from './list'
import { remove } from './remove'
import { test } from './test'

export const webhook = router({ list, add, remove, test })
