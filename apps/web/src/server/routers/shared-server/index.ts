import { router } from '../../procedures'
import { read } from './read'

export const sharedServer = router({ read })
