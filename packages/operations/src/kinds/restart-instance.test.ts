import { expect, test } from 'vitest'
import { restartInstance } from './restart-instance'

test('what runs is restarted, what does not run is only started', () => {
  const names = (state: 'running' | 'stopped' | 'crashed' | 'unknown') =>
    restartInstance.plan({} as never, { state }).map((s) => s.name)
  expect(names('running')).toEqual(['restart', 'observe'])
  expect(names('unknown')).toEqual(['restart', 'observe'])
  expect(names('stopped')).toEqual(['start', 'observe-start'])
  expect(names('crashed')).toEqual(['start', 'observe-start'])
})
