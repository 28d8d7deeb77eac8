import { router } from '../../procedures'
import { drop } from './drop'
import { list } from './list'
import { read } from './read'

export const keptAside = router({ list, read, drop })
