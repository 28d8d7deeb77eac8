import { expect, test } from 'vitest'
import { newSettingFaults, reservedSettingFault } from './reserved-settings'

test('what no setting can be named, what Floe sets itself and what is named twice is told before anything is made', () => {
  const faults = newSettingFaults(
    ['shared_buffers', 'Port', 'shared buffers', 'SHARED_BUFFERS', 'auto_explain.log_min_duration', ''].map(
      (name) => ({
        name,
      }),
    ),
  )
  expect(faults.map((f) => f?.code ?? null)).toEqual([
    null,
    'setting.reserved',
    'setting.unknown',
    'setting.named_twice',
    null,
    'setting.unknown',
  ])
  expect(faults[1]).toEqual(reservedSettingFault('port'))
})
