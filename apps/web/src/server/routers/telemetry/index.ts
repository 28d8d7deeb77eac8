import { router } from '../../procedures'
import { history } from './history'
import { latest } from './latest'
import { stream } from './stream'

export const telemetry = router({ history, latest, stream })
