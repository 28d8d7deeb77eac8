import { expect, test } from 'vitest'
import { acceptedLoss, isAboutLoss } from './typed-loss'

test('what is typed accepts at least the loss that is stated, to the byte', () => {
  expect(acceptedLoss('4096', 4_096, false)).toBe(4_096)
  expect(acceptedLoss('5000', 4_096, false)).toBe(5_000)
  expect(acceptedLoss('4095', 4_096, false)).toBeNull()
  expect(acceptedLoss('0', 0, false)).toBe(0)
  for (const habit of ['', 'yes', '4096 bytes', '4,096', '4e6', '-1', '4096.0', ' 4096', '9'.repeat(16)])
    expect(acceptedLoss(habit, 4_096, false)).toBeNull()
})

test('an unknown loss is accepted by its word only where it is unknown', () => {
  expect(acceptedLoss('unknown', 4_096, false)).toBeNull()
  expect(acceptedLoss('unknown', null, false)).toBe('unknown')
  // the primary is down but its host answers: how much is missing will be known, and judged by the number
  expect(acceptedLoss('65536', null, false)).toBe(65_536)
})

test('with the primary’s host out of reach no number can be held to', () => {
  expect(acceptedLoss('4096', 4_096, true)).toBeNull()
  expect(acceptedLoss('unknown', 4_096, true)).toBe('unknown')
})

test('a loss that is accepted opens no other blocker', () => {
  expect(isAboutLoss({ code: 'candidate.behind' })).toBe(true)
  expect(isAboutLoss({ code: 'candidate.fenced' })).toBe(false)
})
