/**
 * Settings that a standby may not have smaller than its primary had when the WAL was written: a running one stops
 * replaying, one that starts ends. (CheckRequiredParameterValues in PostgreSQL's xlogrecovery.c.) All are whole numbers
 * without a unit and need a restart. Floe's own settings have no such rule.
 */
export const standbySensitiveSettings = [
  'max_connections',
  'max_worker_processes',
  'max_wal_senders',
  'max_prepared_transactions',
  'max_locks_per_transaction',
] as const
export type StandbySensitiveSetting = (typeof standbySensitiveSettings)[number]

/** Whether the order in which members take a change of this setting matters. */
export function isStandbySensitive(name: string): boolean {
  return (standbySensitiveSettings as readonly string[]).includes(name.toLowerCase())
}
