import type { OperationLogLine } from '@/server/api'

export type { OperationLogLine } from '@/server/api'

/** Adds lines to a log; those that are already in it are not added twice. */
export function appendLog(
  log: readonly OperationLogLine[],
  more: readonly OperationLogLine[],
): readonly OperationLogLine[] {
  const last = log.at(-1)?.id ?? Number.NEGATIVE_INFINITY
  const fresh = more.filter((line) => line.id > last)
  return fresh.length === 0 ? log : [...log, ...fresh]
}
