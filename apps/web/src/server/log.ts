import { createLog } from '@floe/host/log'

/** The log of this process; the supervisor writes it to web.log. */
export const log = createLog(process.env.FLOE_LOG_LEVEL)
