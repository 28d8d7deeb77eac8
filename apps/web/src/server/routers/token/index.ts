import { router } from '../../procedures'
import { create } from './create'
import { list } from './list'
import { revoke } from './revoke'

export const token = router({ list, create, revoke })
