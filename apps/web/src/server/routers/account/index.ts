import { router } from '../../procedures'
import { changePassphrase } from './change-passphrase'
import { endOtherSessions, endSession } from './end-sessions'
import { me } from './me'
import { rename } from './rename'
import { sessions } from './sessions'

export const account = router({ me, sessions, rename, changePassphrase, endSession, endOtherSessions })
