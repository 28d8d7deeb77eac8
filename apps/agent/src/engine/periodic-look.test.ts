import { expect, test, vi } from 'vitest'
import { PeriodicLook } from './periodic-look'

const lookAt = (answers: (() => Promise<number | null>)[], everyMs = 0) => {
  const onChange = vi.fn()
  const ask = vi.fn(() => (answers.shift() as () => Promise<number | null>)())
  return { onChange, ask, look: new PeriodicLook({ everyMs, ask, newsOf: String, onChange }) }
}
const says = (n: number | null) => () => Promise.resolve(n)

test('a change is told once, and an answer that does not come leaves the last one', async () => {
  const { look, onChange } = lookAt([says(1), says(1), () => Promise.reject(new Error('late')), says(2)])
  for (const expected of [1, 1, 1, 2]) {
    await look.look(true)
    expect(look.answer).toBe(expected)
  }
  expect(onChange).toHaveBeenCalledTimes(2)
})

test('it is asked at most so often, and at once when it answers again', async () => {
  const { look, ask } = lookAt([says(1), says(2)], 60_000)
  await look.look(true)
  await look.look(true)
  expect(ask).toHaveBeenCalledTimes(1)
  await look.look(false)
  expect(look.answer).toBeNull()
  await look.look(true)
  expect(look.answer).toBe(2)
})
