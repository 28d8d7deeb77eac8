import { router } from '../../procedures'
import { add } from './add'
import { check } from './check'
import { list } from './list'
import { map } from './map'
import { powerSupply } from './power-supply'
import { remove } from './remove'
import { revoke } from './revoke'
import { show } from './show'
import { storePackagePiece } from './store-package-piece'
import { cancelUpgrade, upgrade, upgradeWithPackages } from './upgrade'
import { upgradePlan } from './upgrade-plan'
import { withdraw } from './withdraw'

export const host = router({
  list,
  show,
  map,
  check,
  add,
  withdraw,
  revoke,
  remove,
  powerSupply,
  upgradePlan,
  upgrade,
  storePackagePiece,
  upgradeWithPackages,
  cancelUpgrade,
})
