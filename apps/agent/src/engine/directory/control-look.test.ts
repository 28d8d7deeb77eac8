import { expect, test, vi } from 'vitest'
import type { ControlFile } from './control-file'
import { ControlLook } from './control-look'

const file = { clusterState: 'shut down' } as ControlFile
const lookAt = (read: () => Promise<ControlFile | null>) => {
  const onChange = vi.fn()
  let runs = false
  const look = new ControlLook({ read, runs: () => runs, onChange })
  return { look, onChange, run: () => (runs = true) }
}

test('one that hangs holds up one report for a moment, and what it says late is told', async () => {
  let answer = (_: ControlFile) => {}
  const read = vi.fn(() => new Promise<ControlFile>((resolve) => (answer = resolve)))
  const { look, onChange } = lookAt(read)
  await look.lookForReport()
  await look.lookForReport()
  expect([look.control, read.mock.calls.length]).toEqual([null, 1])
  answer(file)
  await vi.waitFor(() => expect(look.control).toBe(file))
  expect(onChange).toHaveBeenCalledTimes(1)
})

test('a late answer does not count for one that runs by then', async () => {
  let answer = (_: ControlFile) => {}
  const { look, run } = lookAt(() => new Promise((resolve) => (answer = resolve)))
  const looking = look.lookForReport()
  run()
  answer(file)
  await looking
  expect(look.control).toBeNull()
})

test('a file that cannot be read is none, and is read again for the next report', async () => {
  const answers = [() => Promise.reject(new Error('damaged')), () => Promise.resolve(file)]
  const { look } = lookAt(() => (answers.shift() as () => Promise<ControlFile>)())
  await look.lookForReport()
  expect(look.control).toBeNull()
  await look.lookForReport()
  expect(look.control).toBe(file)
})
