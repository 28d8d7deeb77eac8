import { FaultError, fault } from '@floe/domain'
import { sqlState } from '../process/connection'

/** What the engine says of an error, as the driver has it. */
type EngineError = {
  message: string
  detail?: string
  hint?: string
  where?: string
  constraint?: string
  table?: string
}

/** Codes of their own for what a person can do something about. */
const codes: Record<string, string> = {
  '42P01': 'flashback.table_not_found',
  '42P10': 'flashback.no_key',
  '42P07': 'flashback.name_taken',
  '42501': 'flashback.not_allowed',
  '40001': 'flashback.other_rows',
  '55P03': 'flashback.locked',
  '57014': 'flashback.cancelled',
  '42883': 'flashback.older_engine',
}
/** Of these also where code of users was at work; that may raise the others itself, and does not speak for the engine. */
const whoeverRaised = ['55P03', '57014']

/** The context of an error in a condition before it is evaluated; in code of users there would be more of it. */
const PARSING = 'condition of a flashback'

/** Classes of errors whose texts name objects, moments and settings, and no values of rows. */
const withoutValues = /^(0A|25|3D|3F|40|42|53|54|55|57|58|F0|XX|22023)/

/**
 * A fault of an error of the engine. The texts of most errors of data, and of all that code of users raises (the context says
 * so), may contain values of rows; a fault is stored, so there it names the SQLSTATE and the constraint alone.
 */
export function engineFault(error: unknown): FaultError {
  if (error instanceof FaultError) return error
  const state = sqlState(error)
  if (state === null)
    return fault('instance.no_connection', 'the connection to the instance ended', {
      detail: error instanceof Error ? error.message : String(error),
      hint: 'Its log says why.',
      cause: error,
    })
  const { message, detail, hint, where, constraint, table } = error as EngineError
  const named = codes[state]
  const code = named && (!where || whoeverRaised.includes(state)) ? named : 'flashback.refused'
  if (withoutValues.test(state) && (!where || where === PARSING))
    return fault(code, message, {
      ...(detail ? { detail } : {}),
      ...(hint
        ? { hint }
        : state === '55P03'
          ? { hint: 'Somebody else holds a lock on it. Try again.' }
          : {}),
      cause: error,
    })
  const names = [constraint && `constraint "${constraint}"`, table && `table "${table}"`].filter(Boolean)
  return fault(code, `the engine refused a row with SQLSTATE ${state}`, {
    detail: names.length > 0 ? `It names ${names.join(' of ')}.` : 'Its words may contain values of the row.',
    hint: 'An admin can read the engine’s message for 15 minutes, by "Show what the engine said" or "./floe flashback rows".',
    cause: error,
  })
}

/** The engine's words, with whatever values they contain: for memory only. */
export function engineWords(error: unknown): string | null {
  const cause = error instanceof FaultError ? error.cause : error
  if (sqlState(cause) === null) return null
  const { message, detail, where } = cause as EngineError
  const said = [message, detail].filter(Boolean).join(': ')
  return (where ? `${said} (${where})` : said).slice(0, 2_000)
}
