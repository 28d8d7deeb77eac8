import { z } from 'zod'

export const PERSON_NAME_MAX = 64

/** What acts that is no person, by the names that stand in audit rows: a person called so could pass for it. */
const reserved =
  /^(controller|web|agent|console|floe|system|anonymous|root|postgres|command line\b.*|token of\b.*)$/i
/** Control characters, ends of lines, and what turns the direction of the text around it. */
const invisible = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

/** What a person is called in the console and in its audit trail. */
export const PersonName = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(PERSON_NAME_MAX, `must have at most ${PERSON_NAME_MAX} characters`)
  .refine((name) => !invisible.test(name), 'must not contain control characters')
  .refine((name) => !reserved.test(name.replace(/\s+/g, ' ')), 'is a name that Floe uses itself')
