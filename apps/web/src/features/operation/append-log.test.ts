import { expect, test } from 'vitest'
import { appendLog, type OperationLogLine } from './append-log'

const line = (id: number): OperationLogLine => ({ id, at: id, step: null, text: `line ${id}` })

test('a log line that arrives twice stands in the log once', () => {
  const first = appendLog([], [line(1), line(2)])
  expect(appendLog(first, [line(1), line(2), line(3)]).map((l) => l.id)).toEqual([1, 2, 3])
  expect(appendLog(first, [line(2)])).toBe(first)
})
