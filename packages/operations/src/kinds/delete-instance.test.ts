import { expect, test } from 'vitest'
import { deleteInstance } from './delete-instance'

test('a delete says whether files are kept', () => {
  const title = (keepFiles: boolean) =>
    deleteInstance.plan({ keepFiles } as never, { state: 'running' })[0]?.title
  expect(title(true)).toContain('keep')
  expect(title(false)).not.toContain('keep')
})
