import { z } from 'zod'

/**
 * Floe's error on every wire, in PostgreSQL's voice: `message` is a fact in lower case without a period, `detail` and
 * `hint` are sentences. `code` is `noun.reason` and stable; programs branch on it. None of the texts may hold a secret.
 */
export const Fault = z.object({
  code: z.string(),
  message: z.string(),
  detail: z.string().nullish(),
  hint: z.string().nullish(),
})
export type Fault = z.infer<typeof Fault>

/** A Fault that can be thrown. `cause` stays in the process; it never crosses a wire. */
export class FaultError extends Error {
  override readonly name = 'FaultError'
  readonly fault: Fault
  constructor(fault: Fault, cause?: unknown) {
    super(fault.message, cause === undefined ? undefined : { cause })
    this.fault = fault
  }
}

/** Builds a throwable fault: `throw fault('instance.name_taken', 'instance "x" already exists', { hint: '…' })`. */
export function fault(
  code: string,
  message: string,
  more: { detail?: string; hint?: string; cause?: unknown } = {},
): FaultError {
  return new FaultError({ code, message, detail: more.detail, hint: more.hint }, more.cause)
}

/** Any thrown thing as a Fault; what is not ours becomes `internal` with its message as detail. */
export function toFault(error: unknown): Fault {
  if (error instanceof FaultError) return error.fault
  const text = error instanceof Error ? error.message : String(error)
  return { code: 'internal', message: 'unexpected error', detail: text }
}

/** One line for a terminal or a log: `message (detail) hint`. */
export function formatFault(f: Fault): string {
  return [f.message, f.detail ? `DETAIL: ${f.detail}` : '', f.hint ? `HINT: ${f.hint}` : '']
    .filter(Boolean)
    .join('\n')
}
