import { expect, test } from 'vitest'
import type { OperationDetail } from '../operation/use-operation'
import { paceInWords } from './operation-progress'

const MB = 1024 ** 2
const operation = (work: object | null, state = 'running') =>
  ({ steps: [{ state, startedAt: 10_000, work }] }) as unknown as OperationDetail

test('a running operation is told with its pace and what remains, as far as they are known', () => {
  const work = { doneBytes: 400 * MB, totalBytes: 1_024 * MB, remainingMs: 31_000 }
  expect(paceInWords(operation(work), 12_000)).toBe('400 MB of 1 GB, 200 MB/s, about 30 s left')
  expect(paceInWords(operation({ ...work, totalBytes: null, remainingMs: null }), 12_000)).toBe(
    '400 MB, 200 MB/s',
  )
  // an announced total that was passed says nothing any more
  expect(paceInWords(operation({ ...work, totalBytes: 100 * MB }), 12_000)).toContain('400 MB, 200 MB/s')
  // nobody knows the pace of the first moment
  expect(paceInWords(operation({ ...work, doneBytes: 0 }), 10_100)).toBe('0 B of 1 GB, about 30 s left')
})

test('where no step counts bytes there is no pace', () => {
  expect(paceInWords(operation(null), 12_000)).toBeNull()
  expect(
    paceInWords(operation({ doneBytes: 1, totalBytes: 1, remainingMs: 0 }, 'succeeded'), 12_000),
  ).toBeNull()
})
