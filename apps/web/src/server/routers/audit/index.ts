import { router } from '../../procedures'
import { list } from './list'
import { verify } from './verify'

export const audit = router({ list, verify })
