import { expect, test } from 'vitest'
import { reloadInstance } from './reload-instance'

test('a reload is one step', () => {
  expect(reloadInstance.plan({} as never, { state: 'running' }).map((s) => s.name)).toEqual(['reload'])
})
