/**
 * What the server log says of a start: that the engine had crashed, or had been shut down; that it is the first start of a
 * copy; that it goes on as a standby; that clients are let in.
 */
export type RecoveryLine = 'crashed' | 'clean' | 'copied' | 'standby' | 'ready'

const lines: readonly [RegExp, RecoveryLine][] = [
  [/^database system is ready to accept (read-only )?connections$/, 'ready'],
  [/^database system was shut down (in recovery )?at /, 'clean'],
  [/^database system (was|shutdown was) interrupted(;| while in recovery at )/, 'crashed'],
  [/^starting backup recovery with redo LSN /, 'copied'],
  [/^entering standby mode$/, 'standby'],
]

/**
 * Reads a log message of the startup process or the postmaster (PostgreSQL 14 to 18, lc_messages C); null when it is about
 * something else.
 */
export function parseRecoveryLine(message: string): RecoveryLine | null {
  return lines.find(([words]) => words.test(message))?.[1] ?? null
}
