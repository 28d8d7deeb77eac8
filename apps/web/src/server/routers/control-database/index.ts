import { router } from '../../procedures'
import { acceptRestored } from './accept-restored'

export const controlDatabase = router({ acceptRestored })
