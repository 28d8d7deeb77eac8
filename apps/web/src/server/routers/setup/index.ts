import { router } from '../../procedures'
import { complete } from './complete'
import { status } from './status'

export const setup = router({ status, complete })
