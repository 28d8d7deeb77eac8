import { expect, test } from 'vitest'
import { parseRecoveryLine } from './recovery-log'

test.each([
  ['database system was interrupted; last known up at 2026-11-22 07:00:00 UTC', 'crashed'],
  ['database system was interrupted while in recovery at 2026-11-22 07:00:00 UTC', 'crashed'],
  ['database system was interrupted while in recovery at log time 2026-11-22 07:00:00 UTC', 'crashed'],
  ['database system shutdown was interrupted; last known up at 2026-11-22 07:00:00 UTC', 'crashed'],
  ['database system was shut down at 2026-11-22 07:00:00 UTC', 'clean'],
  ['database system was shut down in recovery at 2026-11-22 07:00:00 UTC', 'clean'],
  ['starting backup recovery with redo LSN 0/2000028, checkpoint LSN 0/2000080, on timeline ID 1', 'copied'],
  ['entering standby mode', 'standby'],
  ['database system is ready to accept connections', 'ready'],
  ['database system is ready to accept read-only connections', 'ready'],
  ['database system is shut down', null],
  ['database system was not properly shut down; automatic recovery in progress', null],
])('%s', (message, line) => expect(parseRecoveryLine(message)).toBe(line))
