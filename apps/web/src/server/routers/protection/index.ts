import { router } from '../../procedures'
import { read } from './read'

export const protection = router({ read })
