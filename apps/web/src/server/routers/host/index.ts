import { router } from '../../procedures'
import { add } from './add'
import { list } from './list'
import { powerSupply } from './power-supply'
import { remove } from './remove'
import { revoke } from './revoke'
import { show } from './show'
import { withdraw } from './withdraw'

export const host = router({ list, show, add, withdraw, revoke, remove, powerSupply })
