import { expect, test } from 'vitest'
import { changeSettings } from './change-settings'

test('any number of settings is applied in one step: all or none', () => {
  const names = (n: number) =>
    changeSettings.plan({ changes: new Array(n).fill({ name: 'work_mem', value: '8MB' }) } as never, {
      state: 'running',
    })
  expect(names(1).map((s) => s.name)).toEqual(['apply'])
  expect(names(5).map((s) => s.name)).toEqual(['apply'])
})
