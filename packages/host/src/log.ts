import pino from 'pino'

/** One event name and its fields a line, as JSON on standard output. Ids always ride along; never a secret. */
export type Log = {
  info(event: string, fields?: object): void
  warn(event: string, fields?: object): void
  error(event: string, fields?: object): void
}

/** The log of a process, whose supervisor writes what it says to a file. */
export function createLog(level = 'info'): Log {
  const logger = pino({
    base: undefined,
    level,
    messageKey: 'event',
    timestamp: pino.stdTimeFunctions.isoTime,
  })
  return {
    info: (event, fields) => logger.info(fields ?? {}, event),
    warn: (event, fields) => logger.warn(fields ?? {}, event),
    error: (event, fields) => logger.error(fields ?? {}, event),
  }
}
