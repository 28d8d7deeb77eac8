import type { CheckedSetting } from '@floe/domain'
import { expect, test } from 'vitest'
import { warnOfPinning } from './pinning-libraries'
import type { TrialResult } from './trial'

const line = (library: string) =>
  `2026-11-28 07:00:00.000 UTC [7] LOG:  sessions of "polar_ss_port" stay with their backends because of library "${library}"\n` +
  '2026-11-28 07:00:00.000 UTC [7] DETAIL:  It may keep something of a session that cannot be carried to another backend.\n'

/** Which of the changes is warned at, and in which words. */
function warned(names: readonly string[], { on = true, log = '' } = {}) {
  const results = names.map(
    (name): CheckedSetting => ({
      ...{ name, oldValue: null, newValue: 'x', impact: 'restart', fault: null },
      ...{ oldNumber: null, newNumber: null },
    }),
  )
  const trial: TrialResult = {
    starts: true,
    settings: [
      { name: 'polar_enable_shared_server', value: on ? 'on' : 'off', source: 'configuration file' },
    ],
    log,
  }
  warnOfPinning(results, trial)
  return results.flatMap(({ name, warning }) => (warning ? [{ at: name, ...warning }] : []))
}

test('libraries that would pin every session are named with the way out, once, at the change that brings it about', () => {
  const log = `${line('pgaudit')}${line('dblink')}${line('pgaudit')}`
  expect(warned(['polar_ss_port', 'polar_enable_shared_server'], { log })).toEqual([
    expect.objectContaining({
      at: 'polar_enable_shared_server',
      code: 'setting.pins_sessions',
      message: expect.stringContaining('libraries "pgaudit", "dblink"'),
      hint: expect.stringContaining('polar_ss_safe_modules (a reload): pgaudit, dblink.'),
    }),
  ])
  expect(warned(['work_mem', 'Shared_Preload_Libraries'], { log: line('pgaudit') })).toMatchObject([
    { at: 'Shared_Preload_Libraries', message: expect.stringContaining('library "pgaudit"') },
  ])
})

test('nothing is said where no library pins, Shared Server stays off, or the changes have no part in it', () => {
  expect(
    warned(['polar_ss_port'], { log: 'LOG:  database system is ready to accept connections\n' }),
  ).toEqual([])
  expect(warned(['polar_enable_shared_server'], { on: false, log: line('pgaudit') })).toEqual([])
  expect(warned(['work_mem'], { log: line('pgaudit') })).toEqual([])
})
