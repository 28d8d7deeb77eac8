import { expect, test } from 'vitest'
import { lossForecast } from './loss-forecast'

test('a standby that has all that was seen is not refused for the loss of nothing', () => {
  expect(lossForecast(0).message).toBe('commits after the last report of the primary may be lost')
  expect(lossForecast(768).message).toBe('about 768 bytes of WAL would be lost')
  expect(lossForecast(null).message).toBe('how much would be lost is unknown')
})
