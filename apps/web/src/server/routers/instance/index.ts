import { router } from '../../procedures'
import { adopt } from './adopt'
import { adoptReported } from './adopt-reported'
import { check } from './check'
import { create } from './create'
import { remove } from './delete'
import { list } from './list'
import { reload } from './reload'
import { requireTls } from './require-tls'
import { restart } from './restart'
import { separate } from './separate'
import { show } from './show'
import { start } from './start'
import { stop } from './stop'

export const instance = router({
  list,
  show,
  check,
  create,
  start,
  stop,
  restart,
  reload,
  separate,
  adopt,
  adoptReported,
  requireTls,
  delete: remove,
})
