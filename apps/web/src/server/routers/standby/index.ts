import { router } from '../../procedures'
import { promote, reclone, rejoin, remove } from './change'
import { create } from './create'

export const standby = router({ create, remove, promote, rejoin, reclone })
