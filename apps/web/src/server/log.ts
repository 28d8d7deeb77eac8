import pino from 'pino'

/** One event name and ids a line, as JSON on standard output; the supervisor writes it to web.log. */
export const log = pino({ name: 'web', level: process.env.FLOE_LOG_LEVEL ?? 'info' })
