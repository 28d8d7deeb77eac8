import { expect, test } from 'vitest'
import { startInstance } from './start-instance'

test('a start is seen through until the instance runs, and says when it follows a crash', () => {
  const title = (state: 'stopped' | 'crashed') => startInstance.plan({} as never, { state })[0]?.title
  expect(startInstance.plan({} as never, { state: 'stopped' }).map((s) => s.name)).toEqual([
    'start',
    'observe',
  ])
  expect(title('crashed')).not.toBe(title('stopped'))
})
