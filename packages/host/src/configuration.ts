import { FaultError, fault } from '@floe/domain'
import { readRegularFile } from './regular-file'

/** What a configuration is held against; a schema of packages/domain. */
export type ConfigurationSchema<T> = {
  safeParse(
    value: unknown,
  ):
    | { success: true; data: T }
    | { success: false; error: { issues: readonly { path: PropertyKey[]; message: string }[] } }
}

/** What to do about a file that is not as it should be; asked when there is such a one. */
export type Hint = string | (() => string)

const hintOf = (hint: Hint) => (typeof hint === 'string' ? hint : hint())

/**
 * Reads a JSON file by its schema. Throws `installation.unreadable` or `installation.invalid`, which name the file and what
 * is wrong with it.
 */
export function readConfigurationFile<T>(file: string, schema: ConfigurationSchema<T>, hint: Hint): T {
  let value: unknown
  try {
    value = JSON.parse(readRegularFile(file))
  } catch (cause) {
    throw unreadable('installation.unreadable', file, hint, cause)
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw fault('installation.invalid', `"${file}" is not valid`, {
    detail: parsed.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`).join('; '),
    hint: hintOf(hint),
    cause: parsed.error,
  })
}

/** Reads a secret, without the white space around it. Throws `installation.no_secret`, without a word of what it holds. */
export function readSecretFile(file: string, hint: Hint): string {
  try {
    return readRegularFile(file).trim()
  } catch (cause) {
    throw unreadable('installation.no_secret', file, hint, cause)
  }
}

function unreadable(code: string, file: string, hint: Hint, cause: unknown): FaultError {
  const refused = cause instanceof FaultError ? cause.fault : null
  return fault(code, `could not read "${file}"`, {
    detail: refused
      ? (refused.detail ?? `${refused.message}.`)
      : cause instanceof Error
        ? cause.message
        : String(cause),
    hint: refused?.hint ?? hintOf(hint),
    cause,
  })
}
