import { router } from '../../procedures'
import { create } from './create'
import { remove } from './delete'
import { list } from './list'
import { reload } from './reload'
import { restart } from './restart'
import { show } from './show'
import { start } from './start'
import { stop } from './stop'

export const instance = router({ list, show, create, start, stop, restart, reload, delete: remove })
