import { z } from 'zod'

/** How long an instance has work and commits none of it before that is a stall, unless its host or itself says otherwise. */
export const STALL_AFTER_MS = 1_000
/** The agent looks once a second: less than half of that says nothing. */
export const STALL_AFTER_LEAST_MS = 500
const MOST_MS = 3_600_000

const units = { ms: 1, s: 1_000, min: 60_000 } as const

/** Milliseconds of a length as a person types it, with one of PostgreSQL's units: `3s`, `1500ms`, `2min`; undefined: it is none. */
function typedMs(text: string): number | undefined {
  const [, number, unit] = /^(\d{1,9}) ?(ms|s|min)$/.exec(text.trim()) ?? []
  const ms = Number(number) * units[unit as keyof typeof units]
  return ms >= STALL_AFTER_LEAST_MS && ms <= MOST_MS ? ms : undefined
}

/** A length, or `default` for what the host says. */
export const StallLength = z
  .string()
  .refine(
    (text) => text.trim() === 'default' || typedMs(text) !== undefined,
    'must be a time from 500ms to 60min with one of the units ms, s and min, or "default"',
  )

/** Null: what the host says. */
export const stallLengthMs = (text: z.infer<typeof StallLength>): number | null => typedMs(text) ?? null

/** What came of setting it: the length that counts now. */
export const StallLengthSet = z.object({ stallAfterMs: z.number().int() })
