import { expect, test } from 'vitest'
import { isoOf, justBefore, RecoveryLog, targetTime } from './recovery-log'

test('it hears how far recovery is, also where lines come in pieces', () => {
  const log = new RecoveryLog()
  log.hear('LOG:  starting point-in-time recovery to 2026-11-24 15:00:00+00\nLOG:  restored log fi')
  log.hear(
    'le "000000010000000000000003" from archive\nLOG:  redo in progress, elapsed time: 1.00 s, current LSN: 0/3A0\n',
  )
  expect(log).toMatchObject({
    lastWal: '000000010000000000000003',
    lsn: '0/3A0',
    open: false,
    atTarget: false,
  })
  log.hear(
    'LOG:  database system is ready to accept read-only connections\nLOG:  pausing at the end of recovery\n',
  )
  expect(log).toMatchObject({ open: true, atTarget: true })
})

test('the end of WAL is told by its newest transaction, and by what was fatal', () => {
  const log = new RecoveryLog()
  log.hear(`LOG:  last completed transaction was at log time 2026-11-24 15:00:00.5+00
FATAL:  recovery ended before configured recovery target was reached
LOG:  startup process (PID 4711) exited with exit code 1
`)
  expect(log.lastTransaction).toBe('2026-11-24 15:00:00.5+00')
  expect(log.reason).toBe('recovery ended before configured recovery target was reached.')
})

test('what a stranger says does not fill the memory', () => {
  const log = new RecoveryLog()
  for (let i = 0; i < 2_000; i++) log.hear(`LOG:  ${'x'.repeat(9_000)}\n`)
  log.hear('y'.repeat(1_000_000))
  expect(log.reason.length).toBeLessThanOrEqual(1_000)
  expect(log.says(/xxx/)).toBe(true)
})

test('the newest moment that is reached lies a microsecond before the newest transaction', () => {
  expect(isoOf('2026-11-24 15:00:00.5+00')).toBe('2026-11-24T15:00:00.5Z')
  expect(isoOf('yesterday')).toBeNull()
  expect(justBefore('2026-11-24 15:00:00.5+00')).toBe('2026-11-24T15:00:00.499999Z')
  expect(justBefore('2026-11-24 00:00:00+00')).toBe('2026-11-23T23:59:59.999999Z')
  expect(justBefore('then')).toBeNull()
})

test('a moment is given to the engine in UTC, to the microsecond', () => {
  expect(targetTime('2026-11-24T15:00:00.123456Z')).toBe('2026-11-24 15:00:00.123456+00')
  expect(targetTime('2026-11-24 15:00+01')).toBe('2026-11-24 14:00:00.000000+00')
  expect(targetTime('2026-11-24T15:00:00.5-0330')).toBe('2026-11-24 18:30:00.500000+00')
})
