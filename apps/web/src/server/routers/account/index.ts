import { router } from '../../procedures'
import { me } from './me'

export const account = router({ me })
