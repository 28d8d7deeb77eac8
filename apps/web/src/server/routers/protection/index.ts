import { router } from '../../procedures'
import { history } from './history'
import { read } from './read'

export const protection = router({ read, history })
