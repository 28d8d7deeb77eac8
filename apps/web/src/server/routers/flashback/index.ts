import { router } from '../../procedures'
import { read } from './read'

export const flashback = router({ read })
